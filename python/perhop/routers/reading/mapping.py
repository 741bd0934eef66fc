"""From the configuration of a port to a scenario: its link, its schedulers, its meters, some traffic."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.model import ALL_CODEPOINTS, How, Match, Port, PortQueue
from perhop.routers.reading.document import Entry, Section, configured, match_entry
from perhop.routers.reading.meters import profile
from perhop.routers.reading.schedulers import Schedulers
from perhop.routers.reading.template import traffic
from perhop.routers.units import key, quoted

if TYPE_CHECKING:
    from perhop.routers.model import Jitter, PortMeter
    from perhop.routers.reading.amounts import Answers, Need
    from perhop.routers.source import Account

DELAY = "5ms"
"""The delay of the link: no configuration has it."""


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
        flows = traffic(tables.order, self._policing, self._port.default_name, self._answers.packet_size, bps)
        return [top, link, *tables.sections, *meters, *flows]

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
                text = (
                    f"`{burst.text}`: the burst has no effect where the shaper's rate is taken as the link's"
                )
                self._account.find("W13", burst.line, f"{text}; give --rate")
        section.entries = [
            Entry("from", '"router"'),
            Entry("to", '"next"'),
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
            name = wanted
            while name in names:
                name += "+"
            names.add(name)
            section = Section(f"[[{self.link}.meters]]", [Entry("name", quoted(name), meter.line)], name)
            if codepoints is not None and codepoints | taken != ALL_CODEPOINTS:
                section.entries.append(match_entry(codepoints, match.line or meter.line))
            own = ALL_CODEPOINTS - taken if codepoints is None else codepoints
            self._policing.append((name, own))
            taken |= own
            result += [section, Section(f"[{self.link}.meters.profile]", table, name)]
        return result

    def _own_meter(self, given: tuple[Match, str, PortMeter]) -> tuple[Match, str, PortMeter]:
        """A meter of the port with the codepoints of its packets."""
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


def _jitter(jitter: Jitter) -> Entry:
    """The random delay of a link."""
    times = {"max": jitter.most}
    if jitter.sd is not None:
        times = {"mean": jitter.mean, "sd": jitter.sd, **times}
    listed = [f"distribution = {quoted(jitter.distribution)}"]
    listed += [f"{name} = {quoted(units.time_text(value))}" for name, value in times.items()]
    listed.append(f"reorder = {str(jitter.reorder).lower()}")
    return configured("jitter", f"{{ {', '.join(listed)} }}", jitter.line, jitter.text)
