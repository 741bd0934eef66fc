"""Shares of a port: guaranteed rates and weights, as `wfq` and `drr` have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perhop.routers import units
from perhop.routers.model import How, Rate, RateUnit
from perhop.routers.reading.document import Entry, configured, rate_entry
from perhop.routers.units import quoted

if TYPE_CHECKING:
    from perhop.routers.model import Port, PortQueue
    from perhop.routers.reading.amounts import Amounts
    from perhop.routers.reading.document import Keys, Section
    from perhop.routers.source import Account

FULL = 0.9995
"""Guarantees that add up to more of the link leave nothing for other queues."""
WEIGHTS = 1000
FINE = 100
"""The weight of a percent beside queues with a share of zero, which have weight 1."""
STRICTLY = 100
"""A strict queue beside queues that share has so many times the weight of all that come after it."""


class Shares:
    """The shares of one port's queues."""

    def __init__(self, port: Port, amounts: Amounts, account: Account) -> None:
        """Findings go to the account."""
        self._port = port
        self._amounts = amounts
        self._account = account
        self.reserved = 0.0
        """Bit/s of policed strict queues, which others do not share."""

    def sharing(self, top: Section, strict: list[PortQueue], queues: list[PortQueue]) -> Keys:
        """Guaranteed rates and weights; strict queues with a rate get it as a guarantee."""
        name = self._port.sharing
        top.entries.append(configured("scheduler", quoted(name), self._port.line, "shares the link"))
        for queue in strict:
            self.beside(queue)
            if queue.cap is not None:
                text = f"class {queue.name}: above its rate it waits in place of being dropped in congestion"
                if queue.cap.burst.how is How.CONFIGURED:
                    text += f"; the burst of `{queue.cap.burst.text}` has no effect"
                self._account.find("W10", queue.cap.line, text)
        guarantees = {queue.name: rate for queue in queues if (rate := self.guaranteed(queue)) is not None}
        bps = {name: self._amounts.rate(rate) for name, rate in guarantees.items()}
        for queue in queues:
            if queue.level is None and queue.ceiling is not None:
                self.ceiling(queue)
        total = sum(bps.values())
        if guarantees:
            line = next(iter(guarantees.values())).line
            port, _, _ = self._amounts.port_rate(line, "shares of the link's rate")
            port -= self.reserved
            self.exceeded(total, port)
            if total >= port * FULL:
                return self._weights(queues, guarantees, bps, max(total, port))
        keys = {
            queue.name: [self.rate(guarantees[queue.name], bps[queue.name])]
            if queue.name in guarantees
            else self._share(queue, queues)
            for queue in queues
        }
        unsaid = [q for q in queues if q.name not in guarantees and q.share is None]
        if len(unsaid) > 1:
            names = ", ".join(queue.name for queue in unsaid)
            text = f"no rate or weight for {names}: equal shares of the rest"
            self._account.find("W06", unsaid[0].line, text)
        return keys

    def exceeded(self, total: float, of: float) -> None:
        """Report guarantees that are more together than the rate that is shared, in bit/s."""
        if total > of * 1.0005 and not self._amounts.needs:
            text = f"the guarantees add up to {units.shown_rate(total)} of {units.shown_rate(of)}"
            self._account.find("W16", self._port.line, f"{text}; they are shares here")

    def outweighing(self, top: Section, strict: list[PortQueue], queues: list[PortQueue]) -> Keys:
        """Strict queues without a rate beside queues that share: as weights, the strict ones' far above."""
        top.entries.append(configured("scheduler", '"wfq"', self._port.line, "shares the link"))
        others = [queue for queue in queues if queue not in strict]
        keys: Keys = {}
        for queue, fraction in zip(others, self.fractions(others), strict=True):
            rate = queue.guarantee or queue.share
            weight = str(max(1, round(WEIGHTS * fraction)))
            if rate is None:
                keys[queue.name] = [Entry("weight", weight, queue.line, How.ASSUMED, "what others leave")]
            else:
                keys[queue.name] = [Entry("weight", weight, rate.line, rate.how, rate.text)]
            if queue.ceiling is not None:
                self.ceiling(queue)
        weight_now = WEIGHTS
        for queue in reversed(strict):
            weight_now *= STRICTLY
            said = "strict: far above all others"
            keys[queue.name] = [configured("weight", str(weight_now), queue.level_line, said)]
            text = (
                f"strict queue {queue.name} beside queues that share: its weight is {STRICTLY} times theirs, "
                f"so they keep {100 / (STRICTLY + 1):.0f} % of the link; it may wait for a packet of each"
            )
            self._account.find("W06", queue.level_line or queue.line, text)
        return keys

    def beside(self, queue: PortQueue) -> None:
        """Report a strict queue that has its rate as a guarantee."""
        text = (
            f"strict queue {queue.name} beside queues that share: its rate is a guarantee here; a packet "
            "may wait for one packet of each other queue in place of one in all"
        )
        self._account.find("W06", queue.level_line or queue.line, text)

    def fractions(self, queues: list[PortQueue], base: float | None = None) -> list[float]:
        """The parts of the link, or of another rate, that queues share: guarantees, then shares."""
        needed = any(queue.guarantee is not None for queue in queues)
        port = self._amounts.port_rate(self._port.line, "shares of the link's rate")[0] if needed else 1.0
        port = base or port
        sure = [0.0 if q.guarantee is None else self._amounts.rate(q.guarantee) / port for q in queues]
        left = max(1.0 - sum(sure), 0.01)
        # A queue that is no class of the device gets the least.
        shares = [0.0 if q.guarantee else q.share.number if q.share else -1.0 for q in queues]
        added = [share < 0 and not queue.line for share, queue in zip(shares, queues, strict=True)]
        shares = [0.0 if extra else share for share, extra in zip(shares, added, strict=True)]
        given = sum(share for share in shares if share > 0)
        percents = any(q.share is not None and q.share.unit is not RateUnit.WEIGHT for q in queues)
        rest = max(100 - given, 1.0) if percents else max(given, 1.0)
        unsaid = max(sum(share < 0 for share in shares), 1)
        shares = [rest / unsaid if share < 0 else share for share in shares]
        total = sum(shares) or 1.0
        shares = [left * max(share, 0.01 * total) / total for share in shares]
        return [part or share for part, share in zip(sure, shares, strict=True)]

    def _weights(
        self, queues: list[PortQueue], guarantees: dict[str, Rate], bps: dict[str, float], total: float
    ) -> Keys:
        """Guarantees that leave nothing over, as weights; queues without one get the least."""
        keys = {}
        for queue in queues:
            rate = guarantees.get(queue.name)
            if rate is None:
                entry = Entry("weight", "1", queue.line, How.ASSUMED, "guarantees leave nothing for it")
                text = f"class {queue.name} has no guarantee and others leave nothing: weight 1 of {WEIGHTS}"
                self._account.find("W06", queue.line, text)
            else:
                weight = max(1, round(WEIGHTS * bps[queue.name] / total))
                said = f"{rate.text}, {units.shown_rate(bps[queue.name])}"
                entry = Entry("weight", str(weight), rate.line, rate.how, said)
            keys[queue.name] = [entry]
        return keys

    def _share(self, queue: PortQueue, queues: list[PortQueue]) -> list[Entry]:
        share = queue.share
        fine = FINE if any(q.share is not None and q.share.number == 0 for q in queues) else 1
        if share is None:
            percents = [q.share.number for q in queues if q.share and q.share.unit is not RateUnit.WEIGHT]
            if percents:
                left = max(1, round(100 - sum(percents)) * fine)
                text = f"class {queue.name} has no share: what others leave, weight {left}"
                self._account.find("W06", queue.line, text)
                return [Entry("weight", str(left), queue.line, How.ASSUMED, "what others leave")]
            return []
        weight = max(1, round(share.number * fine))
        if share.number == 0:
            text = f"class {queue.name}: `{share.text}` is sure of nothing"
            self._account.find("W06", share.line, f"{text}; weight 1 where others have {fine} a percent")
        elif abs(weight - share.number * fine) > 1e-9:
            self._account.find("W16", share.line, f"`{share.text}` becomes weight {weight}")
        return [Entry("weight", str(weight), share.line, share.how, share.text)]

    def guaranteed(self, queue: PortQueue) -> Rate | None:
        """The rate of which a queue is sure: of a strict one, that which limits it."""
        limit = None if queue.level is None else limit_of(queue) or queue.ceiling
        return limit or queue.guarantee

    def unused(self, queues: list[PortQueue], used: dict[str, Rate | None]) -> None:
        """Report rates of queues of which the scheduler uses another one; ceilings of others have reports."""
        for queue in queues:
            rate = used.get(queue.name)
            rates = [queue.guarantee, queue.share]
            if queue.level is not None:
                rates += [None if queue.cap is None else queue.cap.rate, queue.ceiling]
            for other in rates:
                if other is None or (rate is not None and (other.line, other.text) == (rate.line, rate.text)):
                    continue
                why = "has no effect here" if rate is None else f"has no effect beside `{rate.text}`"
                self._account.find("W13", other.line, f"class {queue.name}: `{other.text}` {why}")

    def rate(self, rate: Rate, bps: float) -> Entry:
        """The key `rate` of a queue."""
        said = rate.text if rate.unit is RateUnit.BPS else f"{rate.text}, {units.shown_rate(bps)}"
        return rate_entry("rate", bps, rate, said)

    def ceiling(self, queue: PortQueue) -> None:
        """Report a ceiling that is not enforced."""
        ceiling = queue.ceiling
        if ceiling is None:
            return
        port, _, _ = self._amounts.port_rate(ceiling.line, f"`{ceiling.text}` beside the link's rate")
        if self._amounts.rate(ceiling) < port * FULL:
            text = f"class {queue.name}: `{ceiling.text}` is not enforced here: it may use up to "
            self._account.find("W06", ceiling.line, f"{text}{units.shown_rate(port)} that others leave")


def limit_of(queue: PortQueue) -> Rate | None:
    """The rate up to which a strict queue goes first: that of its own policer, or of its profile."""
    return queue.cap.rate if queue.cap is not None else queue.in_profile
