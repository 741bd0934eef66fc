"""From the configuration of a port to a scenario: its link, schedulers, meters, and a template of traffic."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.model import ALL_CODEPOINTS, How, Match, Port, PortQueue
from perhop.routers.reading import document
from perhop.routers.reading.document import Entry, Section, bytes_entry, configured, fresh, rate_entry
from perhop.routers.reading.rules import Colors
from perhop.routers.reading.schedulers import Schedulers
from perhop.routers.units import key, quoted

if TYPE_CHECKING:
    from collections import abc
    from typing import Any

    from perhop.routers.curves import Color
    from perhop.routers.model import Jitter, PortMeter
    from perhop.routers.reading.amounts import Amounts, Answers, Need, Traffic
    from perhop.routers.source import Account

MARKERS = {"one-bucket": "token-bucket", "rfc2697": "srtcm", "rfc2698": "trtcm", "rfc4115": "rfc4115"}
PROBE = 0.05
"""A flow of the template in a strict queue sends this part of the link's rate."""
TEMPLATE = (
    "Traffic is not part of a router's configuration. This is a template, a flow for each class,",
    "drop curve and meter: replace numbers, round-trip times (access) and transports by your own.",
)
ENDS = (Entry("from", '"router"'), Entry("to", '"next"'))
"""The keys of the nodes of the link."""
DELAY = "5ms"
"""The delay of the link: no configuration has it."""


def profile(meter: PortMeter, amounts: Amounts, account: Account, name: str) -> list[Entry] | None:
    """The keys of a meter's profile; None (with a finding) if it does nothing that perhop can do."""
    if meter.conform == "drop":
        account.find("W10", meter.line, f"policer of {name} drops what conforms; it is left out")
        return None
    kind = meter.kind
    if kind != "one-bucket" and (meter.exceed, meter.violate) == ("drop", "drop"):
        lost = {"rfc2697": "excess burst", "rfc2698": "peak rate and burst", "rfc4115": "excess rate"}[kind]
        text = f"policer of {name} drops what exceeds: its {lost} has no effect, and is left out"
        account.find("W10", meter.line, text)
        kind = "one-bucket"
    out, text = _out(meter, kind)
    if text:
        account.find("W10", meter.line, f"policer of {name}: {text}")
    bps = amounts.rate(meter.rate)
    said = f"{meter.kind}, from {meter.rate.text}"
    entries = [
        Entry("marker", quoted(MARKERS[kind]), meter.line, How.CONFIGURED, said),
        rate_entry("rate", bps, meter.rate),
        bytes_entry("burst", amounts.bytes(meter.burst, bps), meter.burst),
    ]
    if kind == "rfc2697" and meter.second_burst is not None:
        excess = amounts.bytes(meter.second_burst, bps)
        entries.append(bytes_entry("excess-burst", excess, meter.second_burst))
    elif kind in {"rfc2698", "rfc4115"} and meter.peak_rate is not None and meter.second_burst is not None:
        word, burst = ("peak-rate", "peak-burst") if kind == "rfc2698" else ("excess-rate", "excess-burst")
        peak = amounts.rate(meter.peak_rate)
        entries.append(rate_entry(word, peak, meter.peak_rate))
        entries.append(bytes_entry(burst, amounts.bytes(meter.second_burst, peak), meter.second_burst))
    if kind != "one-bucket" and meter.color_aware:
        entries.append(configured("mode", '"color-aware"', meter.line))
    said = f"exceed {meter.exceed}" + ("" if kind == "one-bucket" else f", violate {meter.violate}")
    entries.append(configured("out", quoted(out), meter.line, said))
    return entries


def _out(meter: PortMeter, kind: str) -> tuple[str, str]:
    """The value of `out`, and what is approximated."""
    passed = "what exceeds passes unchanged on the device; here it becomes yellow"
    if kind == "one-bucket":
        if meter.exceed == "drop":
            return "drop", ""
        return "mark", passed if meter.exceed == "transmit" else ""
    if meter.violate == "drop":
        return "drop-red", passed if meter.exceed == "transmit" else ""
    if meter.exceed == "drop":
        return "drop", "drops what exceeds but not what violates; here it drops both"
    return "mark", passed if "transmit" in {meter.exceed, meter.violate} else ""


def _kinds(colors: Colors, codepoints: list[int], free: frozenset[int]) -> list[tuple[str, Color, int]]:
    """The kinds of packets of a queue, for flows: a name (none for the first), a color, a codepoint."""
    samples = [(label, next((c for c in codes if c in free), None)) for label, codes in colors.samples]
    known = [(label, value) for label, value in samples if value is not None]
    if known:
        return [(label if number else "", "green", value) for number, (label, value) in enumerate(known)]
    flows: dict[Color, int] = {}
    for value in codepoints:
        flows.setdefault(colors.codepoints.get(value, colors.listed[0]), value)
    for color in colors.listed:
        flows.setdefault(color, codepoints[0])
    return [(color if number else "", color, value) for number, (color, value) in enumerate(flows.items())]


class Mapping:
    """The scenario of one port."""

    def __init__(self, port: Port, answers: Answers, account: Account) -> None:
        """Findings go to the account; missing answers are in `needs`."""
        self._schedulers = Schedulers(port, answers, account)
        self._port = self._schedulers.port
        self._amounts = self._schedulers.amounts
        self._answers = answers
        self._account = account
        self._policing: list[tuple[str, frozenset[int]]] = []
        """The meters with the packets of each."""
        self.link = f"links.{key(port.name)}"

    @property
    def needs(self) -> list[Need]:
        """Answers that are missing."""
        return self._amounts.needs

    @property
    def names(self) -> list[str]:
        """The names of classes, as --match has them."""
        return self._schedulers.names

    def sections(self) -> list[Section]:
        """The tables of the scenario; only meant to be used if nothing is missing."""
        queues = self._schedulers.queues()
        link = self._link()
        tables = self._schedulers.scheduled(queues, f"{self.link}.queue")
        meters = self._meters(queues)
        top = Section("", [Entry("title", quoted(f"{self._port.name}, imported"))])
        top.entries += [Entry("duration", '"60s"'), Entry("warmup", '"10s"')]
        bps, _, _ = self._amounts.port_rate(self._port.line, "the rate of the link")
        given = self._answers.traffic
        traffic = self._traffic(tables.order, bps) if given is None else _demand(given)
        return [top, link, *tables.sections, *meters, *traffic]

    # The link

    def _link(self) -> Section:
        section = Section(f"[{self.link}]", queue="link")
        bps, how, line = self._amounts.scenario_rate()
        shaper = self._port.shaper
        said = "" if how is How.CONFIGURED else "--rate" if how is How.ASKED else ""
        if shaper is not None and not self._amounts.shaped:
            said = f"{shaper.text}, taken as the link's rate"
            burst = self._port.shaper_burst
            if burst is not None and burst.how is How.CONFIGURED:
                text = f"`{burst.text}`: the burst has no effect where the shaper's rate"
                self._account.find("W13", burst.line, f"{text} is taken as the link's; give --rate")
        section.entries = [
            *ENDS,
            Entry("rate", quoted(units.rate_text(bps)), line, how, said),
            *self._emulated(),
        ]
        return section

    def _emulated(self) -> list[Entry]:
        """The delay, jitter and loss of the link, which only the configuration of an emulator has."""
        delay, loss = self._port.delay, self._port.loss
        entries = [Entry("delay", quoted(DELAY), 0, How.ASSUMED, "no configuration has it")]
        if delay is not None:
            text = quoted(units.time_text(delay.number))
            entries = [Entry("delay", text, delay.line, delay.how, delay.text)]
        jitter = self._port.jitter
        if jitter is not None:
            entries.append(_jitter(jitter))
            mean = (0.0 if delay is None else delay.number) + jitter.mean
            said = "that of the other direction, which no configuration has: the mean of this one"
            table = f"{{ delay = {quoted(units.time_text(mean))} }}"
            entries.append(Entry("reverse", table, 0, How.ASSUMED, said))
        if loss is not None:
            probability, line, said = loss
            entries.append(configured("loss", units.plain(probability, 9), line, said))
        return entries

    # Meters

    def _meters(self, queues: list[PortQueue]) -> list[Section]:
        result = []
        metered = [q for q in [*self._schedulers.nested, *queues] if q.name not in self._schedulers.policed]
        listed = [(self._metered(q, queues), q.name, meter) for q in metered for meter in q.meters]
        listed = [*map(self._own_meter, self._port.meters), *listed]
        listed.sort(key=lambda item: item[0].codepoints is None)  # one that takes all comes last
        names: set[str] = set()
        taken: set[int] = set()
        for match, wanted, meter in listed:
            codepoints = None if match.codepoints is None else match.codepoints - taken
            if codepoints == frozenset() or taken == ALL_CODEPOINTS:
                text = f"policer of {wanted}: no packet is left for it; earlier ones take them"
                self._account.find("W14", meter.line, text)
                continue
            table = profile(meter, self._amounts, self._account, wanted)
            if table is None:
                continue
            name = fresh(wanted, names)
            section = Section(f"[[{self.link}.meters]]", [Entry("name", quoted(name), meter.line)], name)
            if codepoints is not None and codepoints | taken != ALL_CODEPOINTS:
                section.entries.append(document.match_entry(codepoints, match.line or meter.line))
            own = ALL_CODEPOINTS - taken if codepoints is None else codepoints
            self._policing.append((name, own))
            taken |= own
            result += [section, Section(f"[{self.link}.meters.profile]", table, name)]
        return result

    def _own_meter(self, given: tuple[Match, str, PortMeter]) -> tuple[Match, str, PortMeter]:
        match, name, meter = given
        codepoints = self._schedulers.classes.codepoints(match, name, "policer of")
        return replace(match, codepoints=codepoints, unknown=()), name, meter

    def _metered(self, queue: PortQueue, queues: list[PortQueue]) -> Match:
        """A class's packets, by codepoint if it takes all others beside a class without a meter."""
        named = [one for one in queues if one.match.codepoints is not None]
        if queue.match.codepoints is not None or all(one.meters for one in named):
            return queue.match
        taken = frozenset[int]().union(*(one.match.codepoints or () for one in named))
        return replace(queue.match, codepoints=ALL_CODEPOINTS - taken)

    # Traffic

    def _traffic(self, order: list[tuple[PortQueue, Colors]], bps: float) -> list[Section]:
        """A flow for each class, color and meter, to be replaced by the traffic of a link of this rate."""
        given = self._answers.packet_size
        packet = "1kB" if given is None else units.bytes_text(given)
        greedy = f'{{ tcp = "linux", packet = "{packet}" }}'
        taken = {c for queue, _ in order for c in queue.match.codepoints or ()}
        result: list[Section] = []
        names: set[str] = set()
        sent: set[int] = set()

        def add(name: str, value: int, color: Color, transport: str) -> None:
            name = fresh(name, names)
            sent.add(value)
            shown = units.SHOWN.get(value)
            entries = [
                Entry("name", quoted(name)),
                Entry("count", "1", 0, None, "how many"),
                *ENDS,
                Entry("dscp", quoted(shown) if shown else str(value)),
                Entry("color", quoted(color), 0, None, "the drop curve of these packets"),
                Entry("transport", transport),
            ]
            result.append(Section("[[flows]]", entries))

        for queue, colors in order or [(PortQueue(self._port.default_name, 0), Colors())]:
            codepoints = sorted(queue.match.codepoints or ())
            if not codepoints:
                named = [c for c in colors.codepoints if c not in taken]
                codepoints = named or [c for c in range(64) if c not in taken][:1] or [0]
            free = ALL_CODEPOINTS - taken if queue.match.codepoints is None else ALL_CODEPOINTS
            rate = units.rate_text(max(1.0, bps * PROBE))
            probe = f'{{ udp = "cbr", rate = "{rate}", packet = "{packet}" }}'
            for label, color, value in _kinds(colors, codepoints, free):
                name = f"{queue.name}-{label}" if label else queue.name
                add(name, value, color, greedy if queue.level is None else probe)
        for name, codes in self._policing:
            if codes and not codes & sent:
                add(name, min(codes), "green", greedy)
        if result:
            result[0].comments = TEMPLATE
        return result


def _demand(traffic: Traffic) -> list[Section]:
    """Flows that a user gives; those that do not say from where to where use the port's link."""

    def entries(table: abc.Mapping[str, Any]) -> list[Entry]:
        return [Entry(key(name), units.toml_value(value, name)) for name, value in table.items()]

    sections = [Section(f"[profiles.{key(name)}]", entries(one)) for name, one in traffic.profiles.items()]
    for flow in traffic.flows:
        ends = () if {"from", "to", "path", "between"} & flow.keys() else ENDS
        sections.append(Section("[[flows]]", [*entries(flow), *ends]))
    sections[0].comments = (f"Traffic of {traffic.file}.",)
    return sections


def _jitter(jitter: Jitter) -> Entry:
    times = {"max": jitter.most}
    if jitter.sd is not None:
        times = {"mean": jitter.mean, "sd": jitter.sd, **times}
    listed = [f"distribution = {quoted(jitter.distribution)}"]
    listed += [f"{name} = {quoted(units.time_text(value))}" for name, value in times.items()]
    listed.append(f"reorder = {str(jitter.reorder).lower()}")
    return configured("jitter", f"{{ {', '.join(listed)} }}", jitter.line, jitter.text)
