"""Limits of what flows sent, in sentences: an end of the connection, an access link, or a shaper."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perhop import _engine
from perhop.measures import catalog
from perhop.measures.run import REVERSE, Group, Run
from perhop.show.numbers import exact, short


@dataclass(frozen=True, slots=True)
class _End:
    """An end of a connection that may hold its flow back.

    Attributes:
        share: The measure of the time in which it does.
        size: That of its size.
        one: What a sentence of one flow says.
        many: What one of several flows says.
        key: The scenario's key.
    """

    share: str
    size: str
    one: str
    many: str
    key: str


_ENDS = (
    _End(
        "receiver_limited",
        "receiver_window_bytes",
        "its receiver's window",
        "their receivers' window",
        "window",
    ),
    _End(
        "buffer_limited", "send_buffer_bytes", "its sender's buffer", "their senders' buffer", "send-buffer"
    ),
)
BOUNDS = {
    entry.name: entry.summary.above
    for entry in catalog.FLOW
    if entry.summary is not None and entry.summary.above is not None
}
"""The measures that only tables with every column have, but where a flow has more than this."""


FULL = 0.95
"""A TCP flow that uses so much of its host's access link is limited by it."""


def remarkable(runs: Sequence[Run]) -> list[str]:
    """The measures of `BOUNDS` that narrower tables have, too."""
    return [name for name, bound in BOUNDS.items() if np.nanmax(_means(runs, name), initial=0.0) > bound]


def sentences(runs: Sequence[Run], scenario: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each class with a flow that an end of its connection held for over 5 % of the time.

    And one for each class with a TCP flow that filled the access link of a host: these links are in no table.
    And one for each link whose queue shapes to less than the link's rate and sent at that rate: the link
    itself is hardly used.

    Args:
        runs: The runs of a scenario.
        scenario: As canonical JSON has it.
    """
    yield from _held_by_ends(runs)
    yield from _filled_access(runs, scenario["flows"])
    yield from _shaped(runs, scenario.get("links", {}))


def _filled_access(runs: Sequence[Run], flows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A sentence for each class with a TCP flow that filled the access link of a host."""
    rates, busy = _means(runs, "throughput_bps"), _means(runs, "busy_s")  # NaN but for TCP
    access = {str(flow["name"]): rate for flow in flows if (rate := _access(flow)) is not None}
    for group, place in _places(runs):
        key, of_link = access.get(group.name, ("", np.inf))
        used = rates[place][~np.isnan(busy[place])] / of_link
        full = used[used > FULL]
        if full.size and not group.is_population:
            yield _filled(group, key, of_link, full)


def _shaped(runs: Sequence[Run], links: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A sentence for each link whose queue shapes to less than the link's rate and sent at that rate."""
    queues = {name: link.get("queue") for name, link in links.items()}
    queues |= {f"{name}{REVERSE}": link.get("reverse", {}).get("queue") for name, link in links.items()}
    for place, link in enumerate(runs[0].raw["links"]):
        name, of_link = str(link["name"]), float(link["mean_rate_bps"])
        rate, key = _shaped_to(queues.get(name) or {})
        shares = [run.raw["links"][place]["utilization"] or 0.0 for run in runs]
        sent = of_link * sum(shares) / len(shares)
        if rate < of_link and sent > FULL * rate:
            yield (
                f"{name} was limited by the shaper of its queue, {exact(rate / 1e6)} Mbit/s of its "
                f"{exact(of_link / 1e6)} Mbit/s; `{key}`."
            )


def _shaped_to(queue: Mapping[str, Any]) -> tuple[float, str]:
    """The rate in bit/s to which a queue shapes, and the key that says so; infinite where it does not."""
    if queue.get("scheduler") == "shaper":
        return float(_engine.quantity("rate", queue["rate"])[0]), "queue.rate"
    if queue.get("scheduler") == "htb":
        roots = (root["rate"] for root in queue["classes"])  # which borrow from none
        return sum(float(_engine.quantity("rate", one)[0]) for one in roots), "queue.classes"
    return np.inf, ""


def _access(flow: Mapping[str, Any]) -> tuple[str, float] | None:
    """The slower access link of a flow's hosts, if there are any: its key, and its rate in bit/s."""
    sending, receiving = flow.get("access"), flow.get("egress") or flow.get("access")
    found = [("access", sending), ("egress" if flow.get("egress") else "access", receiving)]
    rates = [(float(_engine.quantity("rate", link["rate"])[0]), key) for key, link in found if link]
    if not rates:
        return None
    rate, key = min(rates)
    return key, rate


def _filled(group: Group, key: str, rate: float, used: NDArray[np.float64]) -> str:
    """The sentence about the flows of a class that fill their access links."""
    share = f"{used.max():.0%}".replace("%", " %")
    link = f"link, {exact(rate / 1e6)} Mbit/s"
    if group.count == 1:
        return f"{group.name} was limited by its access {link}, of which it used {share}; `{key}`."
    who = "All" if used.size == group.count else f"{used.size} of"
    was = "was limited by its" if used.size == 1 else "were limited by their"
    return f"{who} {group.count} flows of {group.name} {was} access {link}, up to {share} used; `{key}`."


def _places(runs: Sequence[Run]) -> Iterator[tuple[Group, slice]]:
    """Each class, with the place of its flows among those of a run."""
    first = 0
    for group in runs[0].groups:
        yield group, slice(first, first + group.count)
        first += group.count


def _held_by_ends(runs: Sequence[Run]) -> Iterator[str]:
    """A sentence for each class with a flow that an end of its connection held."""
    for end in _ENDS:
        shares, sizes = _means(runs, end.share), _means(runs, end.size)
        for group, place in _places(runs):
            held = shares[place] > BOUNDS[end.share]  # NaN is not
            if held.any():
                yield _sentence(group, end, shares[place][held], sizes[place][held])


def _sentence(group: Group, end: _End, shares: NDArray[np.float64], sizes: NDArray[np.float64]) -> str:
    """The sentence about the flows of a class that an end of their connection held."""
    if group.count == 1 and not group.is_population:
        who = f"{group.name} was limited by {end.one}"
    elif group.is_population:
        who = f"The flows of {group.name} were limited by {end.many}"
    else:
        many = "All" if shares.size == group.count else f"{shares.size} of"
        was = f"was limited by {end.one}" if shares.size == 1 else f"were limited by {end.many}"
        who = f"{many} {group.count} flows of {group.name} {was}"
    known = sizes[~np.isnan(sizes)]
    how_large = f", {size(float(known.max()))}" if known.size else ""
    most = "up to " if shares.size > 1 else ""
    time = f"{shares.max():.0%}".replace("%", " %")
    return f"{who}{how_large}, for {most}{time} of the time; `{end.key}`."


def _means(runs: Sequence[Run], name: str) -> NDArray[np.float64]:
    """The mean of a measure for each flow, over the runs in which it has a value; NaN without any."""
    values = np.array([run.raw["flows"][name] for run in runs], dtype=np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of means of nothing
        means: NDArray[np.float64] = np.nanmean(values, axis=0)
    return means


def size(count: float) -> str:
    """Bytes as readers see them: `1 MB`, `64.2 kB`."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= factor:
            return f"{short(count / factor, 3)} {unit}"
    return f"{short(count)} B"
