"""`perhop replay`: a capture into a meter, a queue or a link of a scenario."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perhop.commands import options, terminal
from perhop.commands.context import Results
from perhop.errors import PerhopError
from perhop.files import inputs, outputs
from perhop.processes import interrupts

if TYPE_CHECKING:
    import polars as pl


_FORMATS = (".parquet", ".csv")


def replay(
    capture: Annotated[
        Path, typer.Argument(metavar="CAPTURE", help="A pcap or pcapng file; - is standard input.")
    ],
    scenario: Annotated[
        Path | None, typer.Argument(metavar="SCENARIO.toml", help="A scenario file, for its link.")
    ] = None,
    *,
    link: Annotated[
        str | None,
        options.option("--link", "NAME", "The scenario's link (default: the only one with a queue)."),
    ] = None,
    meter: Annotated[
        str | None,
        options.option(
            "--meter", "TABLE", 'A meter, as the keys of a profile: \'marker = "srtcm", rate = "10Mbps"\'.'
        ),
    ] = None,
    queue: Annotated[
        str | None, options.option("--queue", "TABLE", "A queue, as the keys of a queue: 'aqm = \"codel\"'.")
    ] = None,
    rate: Annotated[
        str | None, options.option("--rate", "RATE", "The rate of the queue's link: 100Mbps.")
    ] = None,
    interface: Annotated[
        str | None,
        options.option("--interface", "NAME", "The interface of a pcapng file whose packets take part."),
    ] = None,
    match: Annotated[
        str | None,
        options.option(
            "--match",
            "TABLE",
            "Which packets take part, by source, destination, protocol, source-ports, destination-ports and "
            "dscp: 'source = \"10.0.0.0/8\"' (default: all).",
        ),
    ] = None,
    start: Annotated[
        str | None, options.option("--from", "TIME", "Begin so long after the first packet: 10s.")
    ] = None,
    end: Annotated[str | None, options.option("--to", "TIME", "End so long after the first packet.")] = None,
    speed: Annotated[
        float, options.option("--speed", "FACTOR", "How much faster than captured packets come.")
    ] = 1.0,
    seed: Annotated[int, options.option("--seed", "S", "Draws what an AQM decides by chance.")] = 1,
    top: Annotated[int, options.option("--top", "N", "How many of the largest flows to show.", min=0)] = 10,
    data_plane: Annotated[
        bool,
        options.flag(
            "--data-plane",
            "Forward the packets' bytes through the data plane of `perhop live`; same verdicts.",
        ),
    ] = False,
    allow_cut: Annotated[
        bool, options.flag("--allow-cut", "Replay what is whole of a file that ends within a packet.")
    ] = False,
    packets: Annotated[
        Path | None,
        options.output(
            "--packets", "FILE", "Write what became of each packet there: FILE.parquet or FILE.csv."
        ),
    ] = None,
    wide: options.Wide = False,
    json_file: options.Json = None,
    csv: options.Csv = None,
) -> None:
    """Replay a capture into a meter, a queue or a link of a scenario, and print what becomes of its packets.

    Packets come at the times at which they were captured, whatever becomes of them: how would this hour of
    traffic be marked, dropped, delayed? pcap and pcapng (microseconds or nanoseconds; Ethernet with VLAN
    tags, raw IP, Linux cooked, loopback), IPv4 and IPv6, as a stream; gzip may have compressed the file.

    \b
    Examples:
      perhop replay in.pcap --meter 'marker = "tsw", rate = "10Mbps"'
      perhop replay in.pcap --queue 'aqm = "codel"' --rate 100Mbps --to 60s
      perhop replay in.pcap office.toml --link access --packets out.parquet
    """
    with interrupts.loading():
        from perhop.captures import replaying
    given = {"--meter": meter, "--queue": queue, "--match": match}
    tables = {option: _table(option, text) for option, text in given.items()}
    reads = [path for path in (capture, scenario) if path is not None]
    files = {"--packets": packets}
    results = Results(json_file=json_file, csv=csv, files=files, wide=wide, reads=reads)
    packets_path = None if packets is None else outputs.prepare_file(packets, "--packets", reads, _FORMATS)
    result = replaying.replay(
        capture,
        scenario,
        link=link,
        meter=tables["--meter"],
        queue=tables["--queue"],
        rate=rate,
        interface=interface,
        match=tables["--match"],
        start=start,
        end=end,
        speed=speed,
        seed=seed,
        top=top,
        allow_cut=allow_cut,
        data_plane=data_plane,
        packets=packets is not None,
    )
    interrupts.leaves("interrupted")
    terminal.warn(result.report["notices"])
    if packets_path is not None and result.packets is not None:
        outputs.write(packets_path, _packed(result.packets, packets_path.suffix))
    results.conclude(result)
    results.write_csv()


def _packed(frame: pl.DataFrame, suffix: str) -> bytes:
    """A frame as the contents of a file with that suffix."""
    buffer = io.BytesIO()
    if suffix == ".csv":
        frame.write_csv(buffer)
    else:
        frame.write_parquet(buffer)
    return buffer.getvalue()


def _table(option: str, text: str | None) -> dict[str, Any] | None:
    """The keys of a table, as TOML has them within braces.

    Raises:
        PerhopError: They are none.
    """
    if text is None:
        return None
    inner = text.strip().removeprefix("{").removesuffix("}")
    try:
        read: dict[str, Any] = inputs.toml(f"table = {{ {inner} }}", option)["table"]
    except PerhopError:
        example = {"--match": 'source = "10.0.0.0/8"', "--queue": 'aqm = "codel"'}
        wanted = example.get(option, 'marker = "tsw", rate = "10Mbps"')
        raise PerhopError(
            f"{option}: `{text}` is no table; write keys and values with commas, such as '{wanted}'"
        ) from None
    return read
