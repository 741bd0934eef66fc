"""Linux tc: qdiscs, classes and filters of each device as a port."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perhop.routers.dialect import Dialect
from perhop.routers.tc_commands import Command, commands
from perhop.routers.tc_interface import Device, Interface
from perhop.routers.tc_trees import same_class

if TYPE_CHECKING:
    from perhop.routers.model import Port
    from perhop.routers.source import Account, Source


class Reader:
    """Reads the commands of a source."""

    def __init__(self, source: Source, account: Account) -> None:
        """Findings go to the account."""
        self._account = account
        self._devices: dict[str, Device] = {}
        for command in commands(source, account):
            self._take(command)
        named = [device for device in self._devices.values() if device.name]
        blank = self._devices.get("")
        if blank is not None and len(named) == 1:  # `tc -j class show` has no device
            named[0].classes += blank.classes
            named[0].filters += blank.filters
            del self._devices[""]

    def _take(self, command: Command) -> None:
        device = self._devices.setdefault(command.dev, Device(command.dev, command.line))
        listed = {"qdisc": device.qdiscs, "class": device.classes, "filter": device.filters}[command.object]
        if command.verb == "del":
            self._delete(device, command)
            return
        if command.object != "filter":
            for old in [other for other in listed if self._replaces(command, other)]:
                listed.remove(old)
                self._superseded(old)
        listed.append(command)

    def _replaces(self, command: Command, old: Command) -> bool:
        """Whether a qdisc or class takes the place of an earlier one; changes of gred add virtual queues."""
        if command.parent != old.parent:
            return False
        if command.object == "class":
            return command.verb in {"change", "replace"} and command.handle == old.handle
        return command.verb in {"add", "replace"} or (command.kind == old.kind and command.kind != "gred")

    def _superseded(self, old: Command) -> None:
        self._account.find("W17", old.line, f"replaced by a later command: `tc {old.object} … {old.kind}`")

    def _delete(self, device: Device, command: Command) -> None:
        if command.object == "qdisc" and command.parent == "root":
            for old in [*device.qdiscs, *device.classes, *device.filters]:
                self._account.find(
                    "W17", old.line, f"deleted by a later command: `tc {old.object} … {old.kind}`"
                )
            device.qdiscs, device.classes, device.filters = [], [], []
        elif deleted := self._deleted(device, command):
            deleted[0].lines.update(command.lines)  # of the same port
            text = "deletes a part of what stands before, which is simulated all the same"
            self._account.ignore_whole(command.lines, text, missed=True)
            return
        self._account.ignore_whole(command.lines, "deletes; nothing of it is left")

    def _deleted(self, device: Device, command: Command) -> list[Command]:
        """What a command deletes of that which stands before, other than the root."""
        match command.object:
            case "class":
                return [old for old in device.classes if same_class(old.handle, command.handle)]
            case "filter":
                return [old for old in device.filters if old.parent == command.parent]
            case _:
                return [old for old in device.qdiscs if old.parent == command.parent]

    def read(self) -> list[Port]:
        """A port for each device with a root qdisc, and for what each polices as it arrives."""
        return [
            port for device in self._devices.values() for port in Interface(device, self._account).ports()
        ]


def read(source: Source, account: Account) -> list[Port]:
    """The ports of a script or of what tc shows."""
    return Reader(source, account).read()


def score(source: Source) -> float:
    """Commands of tc, or what it shows."""
    found = re.findall(
        r"(?m)^\s*(?:sudo\s+)?(?:\S*/|\$\{?)?(?:tc|TC)\}? +(?:-\S+ +)*(?:qdisc|class|filter) ", source.text
    )
    shown = re.findall(r"(?m)^(?:qdisc|class) \S+ \S*:", source.text)
    json = '"kind"' in source.text and '"handle"' in source.text
    return 3.0 * len(found) + 3.0 * len(shown) + 9.0 * json


DIALECT = Dialect("tc", "Linux tc", score, read)
