"""`Result.plot`: the report's pictures of a result, as figures of matplotlib."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from perhop.errors import PerhopError
from perhop.runs import pictures
from perhop.runs.result import Result
from perhop.show.declared import Plot, Row
from perhop.show.plot import figure
from perhop.show.topology import network_figure

NO_PROBES = 'the scenario samples nothing over time; give it `probes = { interval = "100ms" }`'


@dataclass(frozen=True, slots=True, repr=False)
class Plots:
    """Pictures of a result; each method returns a new figure, which `savefig` writes.

    They are those of `perhop run --out`, drawn by the same functions: means over the runs with 95 %
    intervals. A picture that the result has nothing for is refused with the reason.
    """

    _result: Result

    def __repr__(self) -> str:
        """Return the title and the names of the pictures."""
        names = [name for name in dir(type(self)) if not name.startswith("_")]
        return f"Plots of {self._result.title!r}: {', '.join(f'.{name}()' for name in names)}"

    def throughput(self) -> Figure:
        """The throughput of a flow of each class in Mbit/s, beside its profile."""
        return _figure([pictures.class_plot(self._result)], "")

    def throughput_over_time(self) -> Figure:
        """The mean throughput of each class's flows over time in Mbit/s.

        Raises:
            PerhopError: The scenario has no `probes`.
        """
        return _figure(pictures.throughput_over_time(self._result.runs), NO_PROBES)

    def windows(self) -> Figure:
        """The mean congestion window of each class's flows over time in packets; it is in no report.

        Raises:
            PerhopError: The scenario has no `probes`, or no flow has a window.
        """
        runs = self._result.runs
        reason = "no flow has a congestion window" if pictures.has_samples(runs) else NO_PROBES
        return _figure(pictures.windows_over_time(runs), reason)

    def queue(self, link: str | None = None) -> Figure:
        """The packets that wait at each link over time, by class where the queue distinguishes classes.

        Args:
            link: Only this one.

        Raises:
            PerhopError: The scenario has no `probes`, no link has a queue, or none has this name.
        """
        runs = self._result.runs
        reason = "no link has a queue" if pictures.has_samples(runs) else NO_PROBES
        return _figure(pictures.queues_over_time(runs, self._link(link)), reason)

    def delay_cdf(self, link: str | None = None) -> Figure:
        """The distribution of the waiting times in ms at each link with a queue.

        Without `link` it shows the links with the most packets, where there are too many for one picture.

        Args:
            link: Only this one.

        Raises:
            PerhopError: No packet passed a queue after the warm-up, or no link has this name.
        """
        drawn = pictures.waiting_times(self._result.runs, self._result.bounds, self._link(link))
        return _figure(drawn, "no packet passed a queue after the warm-up")

    def completion_times(self) -> Figure:
        """The distribution of the completion times of flows that come and go, in ms, by class.

        Raises:
            PerhopError: There are none.
        """
        return self._users(
            "completion-times", "no flow of a group with `arrivals` completed after the warm-up"
        )

    def page_times(self) -> Figure:
        """The distribution of the page times of web users in ms, by class.

        Raises:
            PerhopError: There are none.
        """
        return self._users(
            "page-times", 'no page of a group with `application = { model = "web" }` was complete'
        )

    def response_times(self) -> Figure:
        """The distribution of the response times of request-response users in ms, by class.

        Raises:
            PerhopError: There are none.
        """
        model = "request-response"
        return self._users(
            "response-times",
            f'no response of a group with `application = {{ model = "{model}" }}` was complete',
        )

    def network(self) -> Figure:
        """The network: routers, links, queues and flows."""
        return network_figure(json.loads(self._result.scenario))

    def _link(self, name: str | None) -> str | None:
        """The name of a link with a queue.

        Raises:
            PerhopError: There is none of this name.
        """
        known = [one["name"] for one in self._result.runs[0].raw["links"]]
        if name is not None and name not in known:
            raise PerhopError(f"link: there is no link `{name}` with a queue; take one of {', '.join(known)}")
        return name

    def _users(self, name: str, reason: str) -> Figure:
        drawn = [one for one in pictures.user_times(self._result) if one[0].id == name]
        return _figure(drawn, reason)


def _figure(drawn: Iterable[tuple[Plot, Sequence[Row]]], reason: str) -> Figure:
    """The only picture.

    Raises:
        PerhopError: There is none, for this reason.
    """
    for plot, rows in drawn:
        return figure(plot, rows, "run")
    raise PerhopError(f"nothing to draw: {reason}")
