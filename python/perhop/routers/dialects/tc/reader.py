"""Linux tc: qdiscs, classes and filters of each device as a port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.routers.dialects.tc.commands import Command, commands
from perhop.routers.dialects.tc.interface import Device, Interface
from perhop.routers.dialects.tc.trees import class_of

if TYPE_CHECKING:
    from perhop.routers.model import Port
    from perhop.routers.source import Account, Source


def _place(command: Command) -> tuple[str, ...]:
    """The place of a command: a class by its handle, a qdisc or a filter by its parent."""
    of_class = command.object == "class"
    return ("class", *class_of(command.handle)) if of_class else (command.object, command.parent)


class Reader:
    """Reads the commands of a source."""

    def __init__(self, source: Source, account: Account) -> None:
        """Findings go to the account."""
        self._account = account
        self._devices: dict[str, Device] = {}
        self._kept: dict[str, dict[tuple[str, ...], list[Command]]] = {}
        """The commands of each device by what they are about, without those that others replace."""
        self._replaced: set[int] = set()
        for command in commands(source, account):
            self._take(command)
        for device in self._devices.values():
            device.qdiscs = self._left(device.qdiscs)
            device.classes = self._left(device.classes)
        held = [device for device in self._devices.values() if not device.empty]
        named = [device for device in held if device.name]
        blank = self._devices.get("")
        if blank is not None and len(named) == 1:  # `tc -j class show` has no device
            named[0].classes += blank.classes
            named[0].filters += blank.filters
            del self._devices[""]

    def _take(self, command: Command) -> None:
        device = self._devices.setdefault(command.dev, Device(command.dev, command.line))
        if command.object == "link":
            device.lengths.append(command)
            return
        listed = {"qdisc": device.qdiscs, "class": device.classes, "filter": device.filters}[command.object]
        if command.verb == "del":
            self._delete(device, command)
            return
        place = _place(command)
        kept = self._kept.setdefault(command.dev, {}).setdefault(place, [])
        adds = command.kind == "gred" and command.verb == "change"  # a virtual queue
        if command.object != "filter" and kept and not adds:
            replaced = [other for other in kept if self._replaces(command, other)]
            for old in replaced:
                self._superseded(old)
            self._replaced.update(map(id, replaced))
            kept[:] = self._left(kept)
        kept.append(command)
        listed.append(command)

    def _left(self, listed: list[Command]) -> list[Command]:
        """The commands that no later one replaces."""
        return [command for command in listed if id(command) not in self._replaced]

    def _replaces(self, command: Command, old: Command) -> bool:
        """Whether a qdisc or class takes the place of an earlier one."""
        if command.parent != old.parent:
            return False
        if command.object == "class":
            return command.verb in {"change", "replace"} and command.handle == old.handle
        return command.verb in {"add", "replace"} or command.kind == old.kind

    def _superseded(self, old: Command) -> None:
        self._account.find("W17", old.line, f"replaced by a later command: `tc {old.object} … {old.kind}`")

    def _delete(self, device: Device, command: Command) -> None:
        if command.object == "qdisc" and command.parent == "root":
            for old in self._left([*device.qdiscs, *device.classes, *device.filters]):
                self._account.find(
                    "W17", old.line, f"deleted by a later command: `tc {old.object} … {old.kind}`"
                )
            device.qdiscs, device.classes, device.filters = [], [], []
            self._kept[command.dev] = {}
        elif deleted := self._kept.get(command.dev, {}).get(_place(command)):
            deleted[0].lines.update(command.lines)  # of the same port
            text = "deletes a part of what comes before, which is simulated all the same"
            self._account.ignore_whole(command.lines, text, missed=True)
            return
        self._account.ignore_whole(command.lines, "deletes; nothing of it is left")

    def read(self) -> list[Port]:
        """A port for each device with a root qdisc, and for what each polices as it arrives."""
        return [
            port for device in self._devices.values() for port in Interface(device, self._account).ports()
        ]


def read(source: Source, account: Account) -> list[Port]:
    """The ports of a script or of what tc shows."""
    return Reader(source, account).read()
