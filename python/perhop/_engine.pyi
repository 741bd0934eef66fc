"""The engine: scenarios in, measurements out. Written in Rust; see `crates/perhop-python`."""

from collections.abc import Callable
from typing import Any, BinaryIO, Literal, final

from perhop.outcome import LiveOutcome, Outcome

version: str
"""The engine's version."""

class ScenarioError(ValueError):
    """A scenario that cannot be run. `str()` is the whole message: file, line, key, problem and remedy."""

class LiveUnavailable(Exception):  # noqa: N818 - it is the system's, not the program's
    """This system cannot run scenarios on real packets: what is missing, and what would help."""

class CaptureError(ValueError):
    """A capture that cannot be replayed. `str()` says what is wrong with the file, without its name."""

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

    A list of objects: `name`, `role` ("aqm", "meter", "scheduler" or "congestion-control"), `summary`,
    `source`, and `parameters`, which maps a parameter's name to its `type`, whether it is `required`, its
    `default` (null if it has none) and `description`. A congestion control also has `kernel`: the name that
    Linux has for it, or null.
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

def measures() -> str:
    """The catalog of measures as JSON; `perhop.catalog` reads it.

    `flow`, `link` and `queue`: lists of objects with `name`, `unit`, `description`, `kind` ("count",
    "number", "optional" or "by-color") and `summary` (null, or how tables, sweeps and comparisons show it).
    """

def simulate(
    scenario: str,
    seed: int,
    cancel: Cancel | None = None,
    *,
    engine: Literal["batched", "reference"] | None = None,
) -> Outcome:
    """Run a scenario once; other threads go on meanwhile.

    Args:
        scenario: The scenario in JSON, as `scenario_from_toml` returns it.
        seed: From 0 to 2**64 - 1. The same scenario and seed give the same result on every machine.
        cancel: Set it from another thread to end the run.
        engine: The engine; if not given, the batched engine if it accepts the network, else the reference
            engine, which takes longer. The results are the same.

    Raises:
        ScenarioError: The scenario cannot be run, or not by the batched engine if that is requested.
        Cancelled: `cancel` was set.
        MemoryError: The run takes more than `cancel` allows.
    """

def record(
    scenario: str,
    seed: int,
    cancel: Cancel | None = None,
    *,
    links: list[tuple[str, str]],
    comment: str,
    capture: Callable[[bytes], object] | None = None,
    events: Callable[[bytes], object] | None = None,
) -> Outcome:
    """As `simulate` on the reference engine, and record what becomes of packets at links.

    Args:
        scenario: The scenario in JSON, as `scenario_from_toml` returns it.
        seed: From 0 to 2**64 - 1.
        cancel: Set it from another thread to end the run; the engine sets it where a file cannot be written.
        links: The links, with the names of both directions.
        comment: What the capture says of the run.
        capture: Takes the pieces of a capture file (pcapng).
        events: Takes records as `record_format` describes them.

    Raises:
        ScenarioError: The scenario cannot be run.
        Cancelled: `cancel` was set.
        MemoryError: The run takes more than `cancel` allows.
    """

def record_format() -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """How events are recorded: fields with their numpy types, the names of events, and those of reasons."""

def engine_for(
    scenario: str, cancel: Cancel | None = None
) -> tuple[Literal["batched", "reference"], str | None]:
    """The engine that runs a scenario if none is requested; other threads go on meanwhile.

    It takes the memory of the scenario's flows (`memory`), and none once it has returned.

    Args:
        scenario: In JSON, as `scenario_from_toml` returns it.
        cancel: Set it from another thread to end the setup of the flows.

    Returns:
        The engine, and why it is the reference engine; None for the batched engine.

    Raises:
        ScenarioError: The scenario cannot be run.
        Cancelled: `cancel` was set.
    """

def replay(
    file: BinaryIO,
    options: str,
    scenario: tuple[str, str] | None = None,
    cancel: Cancel | None = None,
    *,
    data_plane: bool = False,
    packets: bool = False,
) -> tuple[str, dict[str, Any] | None]:
    """Replay a capture; other threads go on meanwhile.

    Args:
        file: A pcap or pcapng file, open for reading bytes; it is read once, from where it is.
        options: In JSON: `meter`, `queue` and `rate`, or `link`; `interface`, `match`, `from`,
            `to`, `speed`, `allow-cut`, `seed` and `top`.
        scenario: The scenario of `link`, TOML or JSON, and what stands for its file in messages.
        cancel: Set it from another thread to end the replay.
        data_plane: Forward the packets' bytes through the data plane. The verdicts are the same.
        packets: Keep what became of each packet.

    Returns:
        The report as JSON, and columns of what became of each packet, as arrays by name, with `reasons`: the
        names of verdicts below 255, which is a packet that left.

    Raises:
        CaptureError: The file cannot be read to its end, or has no packet to replay.
        ScenarioError: The options or the scenario are wrong.
        Cancelled: `cancel` was set.
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
) -> LiveOutcome:
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

    Raises:
        ScenarioError: The scenario asks for what no kernel has.
        LiveUnavailable: This system lacks something, or does not allow it.
        RuntimeError: Something went wrong.
    """
