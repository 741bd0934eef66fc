"""Linux's red and gred: drop curves, averages, virtual queues, RIO."""

from __future__ import annotations

from dataclasses import dataclass, replace

from perhop.routers import linux, model, units
from perhop.routers.curves import COLORS
from perhop.routers.dialects.tc.options import Options
from perhop.routers.model import Average, Block, Curve, Drop, Ecn, How, PortQueue, Quantity, Selector, Unit
from perhop.routers.units import quoted

MOST_VQS = 16
SLOW_AVERAGE = 10
"""tc itself warns from this exponent on."""


@dataclass(frozen=True, slots=True)
class VirtualQueue:
    """The configuration of a virtual queue of gred."""

    curve: Curve
    limit: Quantity | None
    prio: float
    average: Average | None
    ecn: Ecn


def red(queue: PortQueue, options: Options) -> None:
    """Give a queue the curve, the limit and the average of a qdisc red."""
    low, high, limit = options.size("min"), options.size("max"), options.size("limit")
    if limit is None:
        options.find("W04", "red without a limit, which tc refuses")
    if high is None and (low is not None or limit is not None):
        number = 3 * low.number if low is not None else limit.number / 4 if limit is not None else 0.0
        high = Quantity(number, Unit.BYTES, options.line, How.DEFAULT, text="max = 3 min, or limit / 4")
    if low is None and high is not None:
        number = float(int(high.number / 3))
        low = Quantity(number, Unit.BYTES, options.line, How.DEFAULT, text="min = max / 3")
    queue.limit = limit
    curve = _parameters(queue, options, low, high)
    if curve is not None:
        queue.curves = [Drop(Selector("all"), curve)]
    queue.ecn = _ecn(queue, options)
    queue.adaptive = options.flag("adaptive") or options.flag("adaptative")
    options.skip("Scell_log")
    options.close()


def _ecn(queue: PortQueue, options: Options) -> Ecn:
    ecn, hard, nodrop = options.flag("ecn"), options.flag("harddrop"), options.flag("nodrop")
    queue.ecn_line = options.line
    if not ecn:
        for name in [name for name, given in (("harddrop", hard), ("nodrop", nodrop)) if given]:
            options.find("W17", f"{queue.name}: `{name}` has no effect without `ecn`")
        return Ecn.OFF
    if nodrop:
        return Ecn.ONLY_BELOW_MAX if hard else Ecn.ONLY
    return Ecn.BELOW_MAX if hard else Ecn.ALWAYS


def _parameters(
    queue: PortQueue, options: Options, low: Quantity | None, high: Quantity | None
) -> Curve | None:
    """The curve and the average of red, or of a virtual queue of gred."""
    line = options.line
    avpkt, burst = options.size("avpkt"), options.number("burst")
    ewma, bandwidth = options.number("ewma"), options.rate("bandwidth")
    given = options.text("probability")
    most = linux.RED_PROBABILITY if given is None else linux.probability(given)
    if given is None:
        text = f"probability not configured; {linux.RED_PROBABILITY} is tc's default"
        options.find("W04", f"{queue.name}: {text}")
    if most is None or low is None or high is None or low.number > high.number:
        options.find("W13", f"{queue.name}: min, max or probability is missing or wrong")
        return None
    if bandwidth is None and ewma is None:
        text = f"{queue.name}: no `bandwidth`: idle time is at 10 Mbit/s; here at the queue's rate"
        options.find("W02", text)
    if bandwidth is not None:
        text = f"{queue.name}: `{bandwidth.text}`: idle time is at that rate; here at the queue's rate"
        options.find("W02", text)
    if avpkt is not None:
        queue.mean_packet = avpkt
    how = How.CONFIGURED if given is not None else How.DEFAULT
    curve = Curve.ramp(low, high, most, line, how)
    queue.average = _wlog(queue.name, options, curve, avpkt, burst, ewma)
    return curve


def _wlog(
    name: str, options: Options, curve: Curve, avpkt: Quantity | None, burst: float | None, ewma: float | None
) -> Average | None:
    """The weight of the average; None (with a report) if it is not known."""
    line, ((low, _), (high, _)) = curve.line, curve.points
    if ewma is not None:
        said = f"Wlog {ewma:.0f}, from ewma"
        return Average(2.0 ** -min(ewma, 31), line, How.CONFIGURED, said)
    if avpkt is None:
        text = f"{name}: no `avpkt`, so the averaging weight is not known"
        options.find("W02", f"{text} (tc -j -d shows it as ewma)")
        return None
    count = int(burst) if burst is not None else int((2 * low.number + high.number) / (3 * avpkt.number))
    exponent = linux.wlog(low.number, min(count, 100_000), avpkt.number)
    if exponent is None:
        text = f"{name}: burst {count} is too small for min {low.number:.0f}"
        options.find("W17", f"{text}: tc refuses the command")
        return None
    how = How.CONFIGURED if burst is not None else How.DEFAULT
    said = f"Wlog {exponent}, from burst {count} and avpkt {avpkt.number:.0f}"
    if burst is None:
        options.find("W02", f"{name}: burst not configured; {count}, tc's default")
    if exponent >= SLOW_AVERAGE:
        options.find("W16", f"{name}: Wlog {exponent}: tc warns that the burst is large")
    if int(high.number).bit_length() + exponent >= 32:
        options.find("W17", f"{name}: the kernel refuses max {high.number:.0f} with Wlog {exponent}")
    return Average(2.0**-exponent, line, how, said)


def gred(
    queue: PortQueue, options: Options, changes: list[Options], virtual: dict[int, frozenset[int]]
) -> None:
    """Give a queue the curves of gred's virtual queues; `virtual`: the codepoints of each, by number."""
    options.flag("setup")
    vqs = int(options.number("vqs") or options.number("DPs") or 0)
    default = int(options.number("default") or 0)
    grio = options.flag("grio")
    whole = options.size("limit")
    table_ecn = _ecn(queue, options)
    options.close()
    if not 1 <= vqs <= MOST_VQS:
        options.say("W16", f"1 to {MOST_VQS} virtual queues, not {vqs}")
    found: dict[int, VirtualQueue] = {}
    for given in changes:
        number = next(filter(_known, map(given.number, ("vq", "DP"))), None)
        if number is None or number >= max(vqs, 1):
            given.say("W13", "a virtual queue beyond those of `setup`; left out")
            continue
        one = PortQueue(f"vq {int(number)}", given.line)
        low, high, limit = given.size("min"), given.size("max"), given.size("limit")
        curve = _parameters(one, given, low, high)
        prio = next(filter(_known, map(given.number, ("prio", "priority"))), None)
        ecn = _ecn(one, given)
        given.close()
        queue.mean_packet = queue.mean_packet or one.mean_packet
        if curve is not None:
            own = ecn if ecn is not Ecn.OFF else table_ecn
            found[int(number)] = VirtualQueue(curve, limit, prio or 0.0, one.average, own)
    modes = {entry.ecn for entry in found.values()}
    queue.ecn = next(iter(modes)) if len(modes) == 1 else Ecn.OFF
    if not found:
        options.find("W17", "gred without virtual queues: a plain FIFO up to its limit")
        queue.limit = whole
        return
    _virtual_queues(queue, options, found, default, virtual, whole, grio=grio)


def _virtual_queues(
    queue: PortQueue,
    options: Options,
    found: dict[int, VirtualQueue],
    default: int,
    virtual: dict[int, frozenset[int]],
    whole: Quantity | None,
    *,
    grio: bool,
) -> None:
    # `prio 0` or none: that of the default virtual queue, else 8.
    fallback = (found[default].prio if default in found else 0.0) or 8.0
    prios = {number: entry.prio or fallback for number, entry in found.items()}
    averages = [entry.average for entry in found.values() if entry.average is not None]
    if len({average.weight for average in averages}) > 1:
        text = "gred: virtual queues with different Wlog: shared averages are off by powers of 2"
        options.find("W17", text, max(entry.curve.line for entry in found.values()))
    queue.average = averages[0] if averages else None
    limits = [entry.limit for entry in found.values() if entry.limit is not None]
    queue.limit = max(limits, key=lambda q: q.number) if limits else whole
    if whole is not None and queue.limit is not None and whole.number < queue.limit.number:
        queue.limit = whole
    distinct = len(set(prios.values())) == len(prios)
    if not virtual and len(found) > 1:
        text = "gred: no filter sets tc_index, so which packets are of which virtual queue is not known"
        options.find("W14", f"{text}; the most lenient is green here")
    if grio and distinct and len(found) == 2 and queue.limit is not None:
        _rio(queue, options, found, prios)
        return
    if not grio:
        text = "gred without grio: each virtual queue has its own average; here one over all packets"
        options.find("W06", text)
    elif distinct and len(found) > 2:
        text = "gred in RIO mode: each virtual queue is judged by itself and those before it"
        options.find("W06", f"{text}; here one average over all packets")
    # A packet without a filter has tc_index 0; the default is for numbers that no virtual queue has.
    rest = 0 if 0 in found else default
    order = sorted(found, key=lambda number: (bool(virtual) and number == rest, number))
    for number, entry in ((number, found[number]) for number in order):
        codes: frozenset[int] | None = virtual.get(number) or frozenset({4 * number + 3})  # of local use
        if virtual and number == rest:
            codes = None
        limit = entry.limit
        if limit is not None and queue.limit is not None and limit.number >= queue.limit.number:
            limit = None  # the queue's acts first, or is the same
        queue.curves.append(Drop(Selector(f"vq {number}", codes), entry.curve, limit, entry.ecn))
    if not virtual:  # no codepoints are known: colors by leniency
        lenient = sorted(queue.curves, key=_leniency)
        if len(lenient) <= len(COLORS):
            queue.colors_assumed = True
            queue.curves = [
                replace(drop, selector=Selector(drop.selector.label, None, color))
                for drop, color in zip(lenient, COLORS, strict=False)
            ]


def _rio(queue: PortQueue, options: Options, found: dict[int, VirtualQueue], prios: dict[int, float]) -> None:
    first, second = sorted(found, key=lambda number: prios[number])

    def text(number: int) -> str:
        (low, _), (high, most) = found[number].curve.points
        most_text = units.plain(most, 6)
        return quoted(f"{units.bytes_text(low.number)}/{units.bytes_text(high.number)}/{most_text}")

    limit = queue.limit
    average = found[first].average
    weight = 1.0 if average is None or average.weight is None else average.weight
    keys = [
        ("in", text(first), found[first].curve.line),
        ("total", text(second), found[second].curve.line),
        ("averages", '"own-class"', queue.line),
        ("limit", quoted(units.bytes_text(limit.number if limit else 1.0)), limit.line if limit else 0),
        ("weight", units.decimal(weight), found[first].curve.line),
        ("wait", "false", queue.line),
        ("scale-by-size", "false", queue.line),
    ]
    if queue.ecn is not Ecn.OFF:
        keys.append(("ecn", model.ECN_VALUES[queue.ecn], queue.ecn_line))
    elif any(entry.ecn is not Ecn.OFF for entry in found.values()):
        said = "gred in RIO mode: ECN of one virtual queue only; here packets of both are dropped"
        options.find("W08", said)
    if queue.mean_packet is not None:
        given = queue.mean_packet
        keys.append(("mean-packet", quoted(units.bytes_text(given.number)), given.line))
    queue.block = Block("aqm", "rio", tuple(keys), queue.line)
    said = "gred in RIO mode: the kernel adds averages of virtual queues; here one is of all packets"
    options.find("W06", said)


def _known(number: float | None) -> bool:
    return number is not None


def _leniency(drop: Drop) -> tuple[float, float]:
    """The order of curves by their largest and smallest threshold, highest first."""
    points = drop.curve.points
    return -points[-1][0].number, -points[0][0].number
