"""The engine: scenarios in, measurements out. Written in Rust; see `crates/perhop-python`.

Arrays are numpy arrays: n flows, k probe samples, b delay bins. Colors stand in the order green, yellow, red.
"""

from collections.abc import Callable
from typing import Any, final

version: str
"""The engine's version."""

class ScenarioError(ValueError):
    """A scenario that cannot be run. `str()` is the whole message: file, line, key, problem and remedy."""

class LiveUnavailable(Exception):  # noqa: N818 - it is the system's, not the program's
    """This system cannot run scenarios on real packets: what is missing, and what would help."""

class Cancelled(Exception):  # noqa: N818 - it is no error
    """The run was cancelled before its end."""

@final
class Cancel:
    """A way to end runs early, and to see how far they are, from any thread."""

    def __new__(cls, most_bytes: int | None = None) -> Cancel:
        """Runs that are given this object and take more memory than `most_bytes` raise `MemoryError`."""

    def cancel(self) -> None:
        """End every run that was given this object; they raise `Cancelled`."""
    def under_way(self) -> float:
        """The runs with this object that are on, each by the part of it that has been simulated."""

def scenario_from_toml(text: str, origin: str) -> str:
    """Read a scenario in TOML.

    Args:
        text: The scenario.
        origin: What stands for the file in messages.

    Returns:
        The scenario as canonical JSON, defaults filled in.

    Raises:
        ScenarioError: The scenario cannot be run.
    """

def scenario_from_json(text: str, origin: str) -> str:
    """As `scenario_from_toml`, for JSON."""

def read_toml(text: str, origin: str, *, real_packets: bool = False) -> tuple[str, list[str]]:
    """Read a scenario in TOML that is to be run.

    Args:
        text: The scenario.
        origin: What stands for the file in messages.
        real_packets: It is to be run by `live` and not by `simulate`.

    Returns:
        The scenario as canonical JSON, and notices: what in it cannot act, or acts otherwise than it seems.

    Raises:
        ScenarioError: The scenario cannot be run, or asks for what can have no effect there.
    """

def read_json(text: str, origin: str, *, real_packets: bool = False) -> tuple[str, list[str]]:
    """As `read_toml`, for JSON."""

def scenario_to_toml(text: str, origin: str) -> str:
    """A scenario in JSON as TOML, defaults filled in; `scenario_from_toml` reads the same from it.

    Raises:
        ScenarioError: The scenario cannot be run.
    """

def scenario_schema() -> str:
    """The JSON Schema (2020-12) of the scenario format."""

def blocks() -> str:
    """Every registered block as JSON.

    A list of objects: `name`, `role` ("aqm", "meter" or "scheduler"), `summary`, `source`, and `parameters`,
    which maps a parameter's name to its `type`, whether it is `required`, its `default` (null if it has none)
        and `description`.
    """

def memory(scenario: str) -> dict[str, Any]:
    """How much memory a run takes, packets that wait or are on their way not counted.

    Args:
        scenario: In JSON, as `scenario_from_toml` returns it.

    Returns:
        `run_bytes`: while the run is on; `kept_bytes`: its result. `flows` and `flow_bytes`, `samples` and
        `sample_bytes`: what takes it. `text`: the same in words.

    Raises:
        ScenarioError: The scenario cannot be run.
    """

def simulate(
    scenario: str, seed: int, cancel: Cancel | None = None, *, plainly: bool = False
) -> dict[str, Any]:
    """Run a scenario once; other threads go on meanwhile.

    Args:
        scenario: The scenario in JSON, as `scenario_from_toml` returns it.
        seed: From 0 to 2**64 - 1. The same scenario and seed give the same result on every machine.
        cancel: Set it from another thread to end the run.
        plainly: Hop by hop in the order of time, one event a hop. The result is the same; it takes longer.

    Returns:
        `duration_s`, `warmup_s`: seconds. `events`: events handled. `packets`: packets that came to links
        between routers, once for each link.

        `groups`: for each group of flows `name`, `count` and `profile_bps` (0 for best effort).

        `flows`: for each flow, all after the warm-up, i64[n] or f64[n]: `group`, `member`, `started_s`,
        `throughput_bps` (first deliveries at the receiver, IP headers included), `acked_bps`,
        `delivered_packets`, `delivered_bytes`, `sent_packets`, `retransmitted_packets`, `timeouts`,
        `fast_retransmits`, `loss_events` (RAP and TFRC; else 0), `mean_transit_s` and `p99_transit_s`
        (one-way delay from host to host) and `jitter_s` (mean of RFC 3550's interarrival jitter), all NaN
        for TCP and where nothing came, `mean_rtt_s` (NaN without a sample); i64[n, 3]: `marked`, `dropped`.

        `links`: for each link with a queue rule `name`, `rate_bps`, and after the warm-up `utilization`,
        `mean_queue_packets`, `delay_s`: waiting times as `edges` f64[b + 1], `counts` i64[b, 3] and
        `max` f64[3], and `measured`: i64[3] `arrived`, `sent`, `dropped` and `notified` by reason. Over the
        whole run, so that they balance, i64[3] `arrived`, `sent`, `waiting`, `dropped` and `notified` by
        reason. `classes`: where the queue tells classes of packets apart, for each `name` and the same counts
        and `delay_s`; else empty.

        `series`: `time_s` f64[k]; `throughput_bps`, `cwnd_packets`, `rtt_s`, `seen_packets`
        (windows as the control of a flow's path last saw them) f64[k, n]; `links`: for each link
        `queue_packets` f64[k], `gauges` by name, f64[k]: what the queue's rule keeps track of, and `classes`
        by name: `packets` that wait, `arrived` and `dropped` since the run began, f64[k]. k is 0 unless the
        scenario sets `probes.interval`.

    Raises:
        ScenarioError: The scenario cannot be run.
        Cancelled: `cancel` was set.
        MemoryError: The run takes more than `cancel` allows.
    """

def live_probe() -> None:
    """Try everything that a run on real packets begins with. The process is changed for good, as by `live`.

    Raises:
        LiveUnavailable: Something is missing.
    """

def live(
    scenario: str,
    seed: int,
    *,
    real_time: bool = True,
    device: str = "auto",
    watch_s: float | None = None,
    watch: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Run a scenario once on real packets, in real time.

    The process must have one thread, and is changed for good.

    Args:
        scenario: The scenario in JSON, as `scenario_from_toml` returns it.
        seed: Draws the flows' starts and the router's chance, as in a simulation.
        real_time: Give the router real-time priority where that is allowed.
        device: How hosts are joined to the router: by "tun" devices, by "packet" sockets and Ethernet, or
            "auto", TUN where it can be.
        watch_s: How often `watch` is called, in seconds.
        watch: Called with a line of JSON: how the run goes.

    Returns:
        What `simulate` returns, and `live`: a report in JSON on how well the machine kept up. `events` are
        the times that the router slept; `packets`, those that it read. `fast_retransmits` and `loss_events`
        of the kernel's TCP are 0.

    Raises:
        ScenarioError: The scenario asks for what no kernel has.
        LiveUnavailable: This system lacks something, or does not allow it.
        RuntimeError: Something went wrong.
    """
