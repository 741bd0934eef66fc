"""`perhop topology`: routers and links by a rule or from a graph, described, and written as a scenario."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perhop import _engine
from perhop.commands import options, terminal
from perhop.errors import PerhopError
from perhop.files import outputs
from perhop.plurals import counted
from perhop.processes import interrupts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


SIZES = {"chain": "routers", "ring": "routers", "star": "leaves"}
"""Generators whose only parameter is a number, and what that counts."""
TABLES = ("fat-tree", "isp")
GRAPHS = (".graphml", ".xml")
"""How the names of graphs end, in any case; those of scenarios end in .toml."""
LINK = {"rate": "1Gbps", "delay": "1ms"}
"""What links are like that nobody describes."""
FLOWS = {"name": "tcp", "count": 10, "transport": {"tcp": "newreno"}}
"""What a scenario begins with that is written for a topology."""
ASIDE = {"from": "a router aside", "to": "another one aside"}
"""Ends of the flow with which a graph is read whose routers are not known yet."""


def topology(
    what: Annotated[
        str,
        typer.Argument(
            metavar="TOPOLOGY",
            help="chain, ring, star, fat-tree or isp; or a file: a graph in GraphML, or a scenario.",
        ),
    ],
    parameters: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...",
            help="Its parameters, such as k=8, and the `rate` and `delay` of its links.",
        ),
    ] = None,
    *,
    output: Annotated[
        Path | None,
        options.output(
            "--output",
            "FILE.toml",
            "Write it as a scenario with ten TCP flows, to go on from (- for standard output).",
            "-o",
        ),
    ] = None,
    links: Annotated[
        bool, options.flag("--links", "In that file, write a table for each link, not the rule.")
    ] = False,
    plot: Annotated[
        Path | None, options.output("--plot", "FILE.svg", "Draw it, if it is not too large.")
    ] = None,
    as_json: options.AsJson = False,
    wide: options.Wide = False,
) -> None:
    """Describe a topology, its routers and links by tier and its distances; write it as a scenario.

    docs/networks.md describes the rules and their parameters. Distances are those in hops.

    \b
    Examples:
      perhop topology fat-tree k=8
      perhop topology isp core=50 aggregation=9 edge=10 -o large.toml
      perhop topology zoo.graphml distances=true rate=10Gbps -o zoo.toml --links
      perhop topology my.toml --plot my.svg
    """
    _check_options(output, plot, links=links, as_json=as_json)
    scenario = _scenario(what, parameters or [])
    shape = json.loads(_engine.shape(scenario))
    if plot is not None:
        _prepare_picture(plot, shape["routers"], Path(what))
    written = None
    if output is not None:
        written = outputs.prepare_file(output, "--output", reads=[Path(what)])
        text = _engine.written_out(scenario) if links else scenario
        content = f"# {_command(what, parameters or [])}\n{_engine.scenario_to_toml(text, what)}"
    if plot is not None:
        with interrupts.deferred():
            from perhop.show import topology as drawing
        _, picture = drawing.draw_network(json.loads(scenario), plot.stem)
        outputs.write(plot, picture.svg)
    if written == outputs.STDOUT:
        terminal.out_bytes(content.encode())
        return
    if written is not None:
        outputs.write(written, content)
    if as_json:
        terminal.say(json.dumps(shape, indent=1, ensure_ascii=False))
        return
    terminal.say(_text(shape, terminal.width(wide=wide)))
    for path in (output, plot):
        if path is not None:
            terminal.say(f"written: {path}")
    if output is not None and shape["parts"] > 1 and _is_graph(what):
        terminal.say("The flows of the scenario are among the routers of the largest part.")


def _check_options(output: Path | None, plot: Path | None, *, links: bool, as_json: bool) -> None:
    """Refuse options that would have no effect, or destroy what another one writes."""
    if links and output is None:
        raise PerhopError("--links says how --output writes links; give an --output, or leave it out")
    if as_json and output is not None and str(output) in {"-", "/dev/stdout"}:
        raise PerhopError("--json and --output - both print on standard output; leave one of them out")
    outputs.apart({"--output": output, "--plot": plot})


def _prepare_picture(plot: Path, routers: int, source: Path) -> None:
    """Refuse a picture that could not be drawn or written, before anything is written."""
    from perhop.show import topology as drawing

    if plot.suffix != ".svg":
        raise PerhopError(f"--plot {plot}: the picture is an SVG; give a name that ends in .svg")
    drawing.check_size(routers)
    outputs.prepare_file(plot, "--plot", reads=[source])


def _expect_scenario(path: Path, what: str) -> None:
    """Refuse what is neither a rule nor the name of a scenario."""
    if not path.exists() and "." not in what:
        raise PerhopError(_no_topology(what))
    if path.suffix.lower() not in {"", ".toml"}:
        raise PerhopError(
            f"{what}: a graph is in GraphML, {' or '.join(GRAPHS)}, and a scenario in .toml; "
            f"convert what is in {path.suffix} to GraphML"
        )


def _no_topology(what: str) -> str:
    """The message about a text that is neither a rule nor a file, with what would be right."""
    kind, equals, size = what.partition("=")
    if equals and kind in SIZES:
        return f"`{what}`: write the size as a parameter, `{kind} {SIZES[kind]}={size or 12}`"
    kinds = ", ".join([*SIZES, *TABLES])
    return f"`{what}` is no topology and no file; topologies: {kinds}; files: .graphml, .toml"


def _is_graph(what: str) -> bool:
    """Whether it names a file in GraphML."""
    return Path(what).suffix.lower() in GRAPHS


def _scenario(what: str, parameters: Iterable[str]) -> str:
    """The scenario of a topology, as canonical JSON."""
    from perhop.scenario import reading

    given: dict[str, str | int | bool] = {}
    for key, value in map(_parameter, parameters):
        if key in given:
            raise PerhopError(f"`{key}=` is given twice; leave one out")
        given[key] = value
    path = Path(what)
    if what in SIZES or what in TABLES or _is_graph(what):
        link = {key: given.pop(key, LINK[key]) for key in LINK}
        if what in SIZES:
            unknown = next((key for key in given if key != SIZES[what]), None)
            if unknown is not None or not given:
                found = f"`{unknown}` is none" if unknown else "give its size"
                raise PerhopError(
                    f"{what} has the parameter {SIZES[what]}, such as {SIZES[what]}=12: {found}"
                )
            rule: dict[str, Any] = {what: given[SIZES[what]]}
        elif what in TABLES:
            rule = {what: given}
        else:
            rule = {"graph": {"file": str(path.resolve()), **given}}
        made = {
            "title": "",
            "duration": "10s",
            "topology": {**rule, "link": link},
            "flows": [{**FLOWS, "between": {}}],
        }
        return _with_graph(made, path.name) if "graph" in rule else reading.canonical(made)
    _expect_scenario(path, what)
    if given:
        raise PerhopError(
            f"{what} is a scenario, which has its own parameters; leave `{next(iter(given))}=` out"
        )
    return reading.canonical(path)


def _with_graph(made: Mapping[str, Any], name: str) -> str:
    """The scenario with the links of its graph in place of the file, and flows that its links can carry."""
    from perhop.scenario import reading

    beside = {"links": {"aside": {**ASIDE, **LINK}}, "flows": [{**FLOWS, **ASIDE}]}
    checked = reading.read({**made, **beside})
    noticed = (notice.partition(" topology.graph.file: ") for notice in checked.notices)
    terminal.warn(text for _, _, text in noticed if text)
    topology = json.loads(checked.text)["topology"]
    topology["graph"]["name"] = name  # whatever folder it is read from later
    parts = _parts(topology["graph"]["links"])
    largest = max(parts, key=len)
    among = {} if len(parts) == 1 else {"among": sorted(largest)}
    return reading.canonical({**made, "topology": topology, "flows": [{**FLOWS, "between": among}]})


def _parts(links: Iterable[Sequence[str]]) -> list[set[str]]:
    """The routers of each part that links connect."""
    part: dict[str, set[str]] = {}
    for one, other, *_ in links:
        small, large = sorted((part.get(one, {one}), part.get(other, {other})), key=len)
        if small is large:  # as of most links: to join a large part with itself would take as long as it is
            continue
        large |= small
        part |= dict.fromkeys(small, large) | {one: large, other: large}
    return list({id(routers): routers for routers in part.values()}.values())


def _parameter(text: str) -> tuple[str, str | int | bool]:
    key, equals, value = text.partition("=")
    if not equals:
        raise PerhopError(f"`{text}` is no KEY=VALUE, such as k=8")
    if value in {"true", "false"}:
        return key, value == "true"
    return key, int(value) if value.lstrip("-").isdecimal() and value.isascii() else value


def _command(what: str, parameters: Iterable[str]) -> str:
    return terminal.command("topology", what, *parameters)


def _text(shape: Mapping[str, Any], width: int | None) -> str:
    from perhop.show import table

    size = f"{counted(shape['routers'], 'router')}, {counted(shape['links'], 'link')}"
    lines = [f"{shape['words']}: {size}" if shape["words"] else size]
    rows = [
        {
            "tier": tier["name"],
            "routers": str(tier["routers"]),
            "links": str(tier["links"]),
            "links of a router": _range(tier["degrees"]),
        }
        for tier in shape["tiers"]
    ]
    lines += table.records(rows, width)
    if shape["parts"] > 1:
        lines.append(f"{shape['parts']} parts that no link connects")
    if shape["diameter"] is None:
        lines.append("distances: not computed for so many routers")
    else:
        lines.append(
            f"distances: at most {counted(shape['diameter'], 'hop')}, {shape['mean_hops']:.2f} on average"
        )
    degrees = sorted((int(degree), count) for degree, count in shape["degrees"].items())
    joint = "\N{NO-BREAK SPACE}"  # a pair stays on a line
    listed = ", ".join(f"{degree}{joint}×{joint}{count}" for degree, count in degrees[:12])
    more = f" and {len(degrees) - 12} more" if len(degrees) > 12 else ""
    lines.append(table.prose(f"links of a router × routers: {listed}{more}", width).replace(joint, " "))
    return "\n".join(lines)


def _range(ends: tuple[int, int]) -> str:
    return str(ends[0]) if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
