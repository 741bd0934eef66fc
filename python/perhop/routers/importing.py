"""From files to a scenario: the dialect, the port, what is missing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perhop.errors import PerhopError
from perhop.routers.dialects import READERS
from perhop.routers.reading.document import Imported, rows, to_toml
from perhop.routers.reading.mapping import Mapping
from perhop.routers.source import Account, Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perhop.routers.dialect import Dialect
    from perhop.routers.model import Port
    from perhop.routers.reading.amounts import Answers
    from perhop.routers.source import Source


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of a dialect's reader: the ports, and the account of lines."""

    dialect: Dialect
    ports: list[Port]
    account: Account


def recognised(source: Source) -> Dialect:
    """The dialect that a text looks like most.

    Raises:
        PerhopError: It looks like none.
    """
    scores = {name: dialect.score(source) for name, dialect in READERS.items() if dialect.score is not None}
    best = max(scores, key=scores.__getitem__)
    if scores[best] <= 0:
        text = "looks like no configuration with queues; name its dialect"
        raise PerhopError(f"{source.names[0]}: {text}: --from {', '.join(READERS)}")
    return READERS[best]


def read(source: Source, dialect: Dialect) -> Reading:
    """The ports of a source, as `Dialect` says: whatever the text is, lines are reported."""
    if dialect.read is None:
        raise PerhopError(f"{source.names[0]}: {dialect.title} can be written, not read")
    account = Account(source)
    return Reading(dialect, _named(dialect.read(source, account)), account)


def _named(ports: list[Port]) -> list[Port]:
    """Ports by name: what polices arriving packets is `… ingress` beside the queues of its interface."""
    taken = {port.name for port in ports if port.direction == "output"}
    count: dict[str, int] = {}
    for port in ports:
        if port.direction == "input" and port.name in taken:
            port.name = f"{port.name} ingress"
        count[port.name] = number = count.get(port.name, 0) + 1
        port.name += f" {number}" if number > 1 else ""
    return ports


def imported(
    source: Source, answers: Answers, *, dialect: str | None = None, interface: str | None = None
) -> Imported:
    """A scenario of one port of a configuration, with its report.

    Raises:
        PerhopError: The dialect or the port is not known, or answers are missing; the message names the
            options that give them.
    """
    if dialect is not None and dialect not in READERS:
        raise PerhopError(f"--from must be one of {', '.join(READERS)}, not `{dialect}`")
    language = READERS[dialect] if dialect is not None else recognised(source)
    reading = read(source, language)
    port = chosen(reading, interface)
    account = reading.account
    lines = port.lines.union(*port.shared)
    others = _of_others(reading, port) - lines
    account.use(lines)
    account.leave_out(others)
    for finding in port.findings:
        account.find(finding.code, finding.line, finding.text)
    _policed_before(reading, port, lines)
    mapping = Mapping(port, answers, account)
    sections = mapping.sections()
    classes = dict.fromkeys([*mapping.names, *(name for _, name, _ in port.meters)])
    strange = [name for name in answers.matches if name not in classes]
    if strange:
        listed = ", ".join(classes) or "none"
        said = f"{port.name} has no such class; there are {listed}"
        raise PerhopError(f"{source.names[0]}: --match {strange[0]}: {said}")
    lost = account.lost(lines, others)
    if lost and not answers.lenient:
        more = f" ({len(lost) - 1} more)" if len(lost) > 1 else ""
        raise PerhopError(
            f"{source.names[0]}: {source.place(lost[0].line)}: {lost[0].text}{more}; what {port.name} does "
            "depends on it: correct it, or leave it out with --lenient"
        )
    if mapping.needs:
        said = _missing(source, mapping)
        raise PerhopError(f"{source.names[0]}: {said}; give them, or assume with --lenient")
    account.close(port.name)
    findings = tuple(sorted(account.findings))
    text = to_toml(sections, _head(source, language, port, findings), source)
    return Imported(language.name, port.name, text, tuple(rows(sections)), findings)


def chosen(reading: Reading, interface: str | None) -> Port:
    """The port of this name, or the only one with queues."""
    ports, name = reading.ports, reading.account.source.names[0]
    if not ports:
        raise PerhopError(f"{name}: no queues or policers were found as {reading.dialect.title} writes them")
    listed = ", ".join(port.name for port in ports)
    if interface is not None:
        found = [port for port in ports if port.name.lower() == interface.lower()]
        if not found:
            raise PerhopError(f"{name}: --interface {interface}: has no queues; there are {listed}")
        return found[0]
    outputs = [port for port in ports if port.direction == "output"]
    candidates = [port for port in outputs if port.attached] or outputs or ports
    if len(candidates) > 1:
        raise PerhopError(f"{name}: several interfaces have queues; choose one with --interface: {listed}")
    return candidates[0]


def _of_others(reading: Reading, port: Port) -> set[int]:
    others = [other for other in reading.ports if other is not port]
    shared = {id(lines): lines for other in others for lines in other.shared}
    return set[int]().union(*(other.lines for other in others), *shared.values())


def _policed_before(reading: Reading, port: Port, lines: set[int]) -> None:
    """Name the policers of packets that arrive at a port's interface: they act on no packet of its queues.

    Of one that the port's own lines define, the line is that which applies it to arriving packets.
    """
    for other in reading.ports:
        if port.direction == "output" and other.direction == "input" and _same_interface(port, other):
            meters = [meter for _, _, meter in other.meters]
            meters += [meter for queue in other.queues for meter in queue.meters]
            for meter in meters:
                line = other.line if meter.line in lines else meter.line
                text = "a policer of packets that arrive, not of those in the queues; it is imported by"
                reading.account.find("W10", line, f'{text} --interface "{other.name}"')


def _same_interface(one: Port, other: Port) -> bool:
    """Whether ports are directions of one interface; of Junos the interface and its units are one."""
    names = [re.sub(" ingress(?: [0-9]+)?$", "", port.name) for port in (one, other)]
    short, long = sorted(names, key=len)
    return long == short or long.startswith(f"{short}.")


def _missing(source: Source, mapping: Mapping) -> str:
    by_option: dict[str, list[str]] = {}
    for need in mapping.needs:
        place = f"{source.place(need.line)}: " if need.line > 0 else ""
        by_option.setdefault(need.option, []).append(f"{place}{need.why}")
    parts = [f"{option} ({reasons[0]})" for option, reasons in by_option.items()]
    return f"missing {', '.join(parts)}"


def _head(source: Source, dialect: Dialect, port: Port, findings: Sequence[Finding]) -> list[str]:
    head = [f"{port.name} of {', '.join(source.names)}, read as {dialect.title} by perhop import."]
    listed = [finding for finding in findings if finding.code != "W13"]
    if listed:
        head.append("What differs from the device (docs/configurations.md explains the codes):")
        head += [f"  {finding.code} {source.place(finding.line)}: {finding.text}" for finding in listed]
    ignored = len(findings) - len(listed)
    if ignored:
        head.append(f"Lines that have no effect here: {ignored}; perhop import lists them.")
    return head
