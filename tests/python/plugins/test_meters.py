"""Meters in Python: colors as the compiled twin's, policing, errors, and where they run."""

from __future__ import annotations

import json
from importlib import metadata
from typing import TYPE_CHECKING, Any

import pytest
from tests.python.plugins import profiles
from tests.python.plugins.profiles import Bucket, Dice, Faulty
from tests.python.plugins.test_plugins import same

import perhop
from perhop import BlockError, PerhopError, ScenarioError, _engine
from perhop.blocks import digests, plugins
from perhop.runs import one_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.python.conftest import Finished

    Perhop = Callable[..., Finished]

MODULE = "tests.python.plugins.profiles"
RIO = {"aqm": "rio", "in": "40/70/0.02", "total": "10/30/0.2", "limit": "90p"}
COMPILED = {"marker": "token-bucket", "rate": "1Mbps", "burst": "20kB"}


def scenario(meter: object, place: str = "flow", **extra: object) -> dict[str, Any]:
    """Six TCP flows at 5 Mbit/s, metered at their hosts, together at the first router, or at the link."""
    flow: dict[str, Any] = {
        "name": "tcp",
        "count": 6,
        "from": "a",
        "to": "b",
        "transport": {"tcp": "newreno"},
    }
    link: dict[str, Any] = {"from": "a", "to": "b", "rate": "5Mbps", "delay": "20ms", "queue": RIO}
    found: dict[str, Any] = {"duration": "6s", "warmup": "0s", "links": {"l": link}, "flows": [flow]}
    if place == "flow":
        flow["profile"] = meter
    elif place == "profile":
        flow["profile"], found["profiles"] = "gold", {"gold": meter}
    else:
        link["meters"] = [{"name": "m", "profile": meter, "promote": True}]
    return {**found, **extra}


@pytest.mark.parametrize("engine", ["batched", "reference"])
@pytest.mark.parametrize("out", ["mark", "drop"])
@pytest.mark.parametrize("place", ["flow", "profile", "link"])
def test_a_token_bucket_in_python_is_the_compiled_one_to_the_bit(engine: Any, out: Any, place: str) -> None:  # noqa: ANN401
    mine = perhop.run(scenario(Bucket(rate="1Mbps", burst="20kB", out=out), place), engine=engine, runs=1)
    theirs = perhop.run(scenario({**COMPILED, "out": out}, place), engine=engine, runs=1)
    (one,), (other,) = mine.runs, theirs.runs
    assert same(one.raw, other.raw)
    marked = one.link("l")["measured"]["arrived"]
    assert marked[0] > 100
    assert (marked[1] > 100) == (out == "mark")


def test_both_engines_run_a_meter_with_chance_alike() -> None:
    engines = ("batched", "reference")
    table = scenario(Dice(rate="1Mbps", green=0.3))
    one, other = (perhop.run(table, engine=engine, runs=1).runs[0] for engine in engines)  # type: ignore[arg-type]
    assert same(one.raw, other.raw)
    assert all(packets > 100 for packets in one.link("l")["measured"]["arrived"])


def test_a_meter_by_hand_gives_the_colors_of_the_bucket() -> None:
    # 1 Mbit/s fills 1000 bytes in 8 ms; the bucket holds two packets and starts full.
    expected = ["green", "green", "yellow", "yellow", "green"]
    times = ["0s", "0s", "0s", "7.999999ms", "8ms"]
    bucket = Bucket(rate="1Mbps", burst="2kB")
    for table in (bucket, {"marker": f"{MODULE}:Bucket", "rate": "1Mbps", "burst": "2kB"}):
        meter = perhop.drive(table)
        assert [meter.offer(at=at).packet.color for at in times] == expected
    policer = perhop.drive(Bucket(rate="1Mbps", burst="1kB", out="drop"))
    assert [policer.offer(at="0s").verdict for _ in range(2)] == ["pass", "drop"]
    with pytest.raises(BlockError, match=r"Unready: __init__ at .*: RuntimeError: not ready"):
        perhop.drive({"marker": f"{MODULE}:Unready", "rate": "1Mbps"})


def test_a_run_with_meters_can_be_stepped_through_copied_and_restored() -> None:
    table = scenario(Dice(rate="1Mbps", green=0.3))
    whole = perhop.run(table, runs=1).runs[0].flows("delivered_packets")
    simulation = perhop.Simulation(table, seed=1)
    simulation.run_until("2s")
    snapshot = simulation.snapshot()
    for _ in range(2):
        simulation.run_until("6s")
        delivered = simulation.finish().runs[0].flows("delivered_packets")
        assert list(delivered) == list(whole)
        simulation.restore(snapshot)


def test_the_table_has_the_keys_of_every_meter_and_those_of_the_class() -> None:
    canonical = json.loads(
        perhop.scenario.reading.canonical(scenario(Bucket(rate="1Mbps", burst="20kB", af=2)))
    )
    assert canonical["flows"][0]["profile"] == {
        "marker": "python",
        "class": f"{MODULE}:Bucket",
        "rate": "1Mbps",
        "af": 2,
        "source": digests.digest_of(Bucket),
        "burst": "20kB",
    }
    again = json.dumps(canonical)
    assert json.loads(perhop.scenario.reading.canonical(canonical)) == json.loads(again)
    assert one_run.modules(perhop.scenario.reading.canonical(canonical)) == {MODULE}


@pytest.mark.parametrize(
    ("meter", "problem"),
    [
        ({"marker": f"{MODULE}:Bucket", "rate": "1Mbps"}, f"profile: key `burst` of {MODULE}:Bucket is mis"),
        (
            {"marker": f"{MODULE}:Bucket", "burst": "2kB"},
            f"profile: key `rate` of {MODULE}:Bucket is missing",
        ),
        ({"marker": f"{MODULE}:Dice", "rate": 1}, "profile.rate: expected text in quotes: a rate with its"),
        ({"marker": f"{MODULE}:Dice", "rate": "1Mbps", "green": 2}, "profile.green: "),
        ({"marker": f"{MODULE}:Dice", "rate": "1Mbps", "out": "burn"}, "profile.out: expected one of 'mark'"),
        ({"marker": f"{MODULE}:Dice", "rate": "1Mbps", "af": 9}, "profile.af: "),
        ({"marker": f"{MODULE}:Dice", "rate": "1Mbps", "x": 9}, f"profile.x: unknown key `x` of {MODULE}:Di"),
        ({"marker": f"{MODULE}:Silent", "rate": "1Mbps"}, "has no method on_packet(self, packet, now, rand"),
        ({"marker": "tests.python.plugins.rules:Blue", "rate": "1Mbps"}, "is no subclass of perhop.Meter"),
        ({"marker": f"{MODULE}:Dice", "class": "x:Y"}, "profile.class: `marker` names the class already"),
        ({"marker": "nobody", "rate": "1Mbps"}, "unknown marker `nobody`"),
    ],
)
def test_a_wrong_table_is_refused_with_its_place(meter: dict[str, Any], problem: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        perhop.run(scenario(meter), runs=1)
    assert problem in str(refused.value)
    assert "flows[0]." in str(refused.value)


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ("raises", r"ZeroDivisionError: .*\(profiles.py:\d+\)"),
        ("changes the packet", "AttributeError: .*'size'.* not writable"),
        ("nothing", 'it returned None; return "green", "yellow" or "red"'),
        ("a number", 'it returned 1; return "green"'),
        ("a word", "it returned 'blue'; return \"green\""),
    ],
)
@pytest.mark.parametrize("engine", ["reference", "batched"])
def test_an_error_names_the_class_the_time_and_the_packet(what: str, problem: str, engine: Any) -> None:  # noqa: ANN401
    place = (
        rf"^{MODULE}:Faulty: on_packet at its host at \d\.\d{{9}} s for a packet of flow `tcp/\d` "
        r"\(\d+ bytes, \w+\): "
    )
    with pytest.raises(BlockError, match=place + problem):
        perhop.run(scenario(Faulty(rate="1Mbps", what=what)), engine=engine, runs=1)


@pytest.mark.parametrize(
    ("place", "said"), [("profile", "profile `gold`"), ("link", "meter `m` of link `l`")]
)
def test_an_error_names_the_place(place: str, said: str) -> None:
    with pytest.raises(BlockError, match=f"Faulty: on_packet at {said} at "):
        perhop.run(scenario(Faulty(rate="1Mbps", what="raises"), place), runs=1)


def test_results_do_not_depend_on_the_number_of_jobs() -> None:
    table = scenario(Dice(rate="1Mbps"), duration="10s")
    alone, together = (perhop.run(table, runs=4, jobs=jobs).runs for jobs in (1, 3))
    assert all(same(one.raw, other.raw) for one, other in zip(alone, together, strict=True))


def test_the_harness_passes_sound_classes_and_refuses_others() -> None:
    def failures(meter: perhop.Meter) -> list[str]:
        found = _engine.check_meter(json.dumps(meter.to_dict()), 20)
        return [what for what, problem in found if problem]

    assert failures(Bucket(rate="1Mbps", burst="3kB")) == []
    assert failures(Dice(rate="1Mbps")) == []
    forgetful = failures(profiles.Forgetful(rate="1Mbps"))
    assert forgetful == ["two runs with one seed decide alike", "a copy decides as its original"]
    assert failures(Faulty(rate="1Mbps", what="raises")) == [
        "no sequence of calls raises an error, and each returns a color"
    ]


def test_a_package_registers_meters_by_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    point = metadata.EntryPoint("packaged", f"{MODULE}:Dice", "perhop.meters")
    monkeypatch.setattr(
        metadata, "entry_points", lambda *, group: [point] if group == "perhop.meters" else []
    )
    monkeypatch.setattr(plugins, "_REGISTERED", {})
    assert plugins.registered("meter") == {"packaged": f"{MODULE}:Dice"}
    (described,) = plugins.described()
    assert (described["name"], described["role"]) == ("packaged", "meter")
    assert described["parameters"]["rate"]["required"]
    assert described["parameters"]["out"]["description"] == "What happens to packets out of profile."
    taken = metadata.EntryPoint("tsw", f"{MODULE}:Dice", "perhop.meters")
    monkeypatch.setattr(
        metadata, "entry_points", lambda *, group: [taken] if group == "perhop.meters" else []
    )
    monkeypatch.setattr(plugins, "_REGISTERED", {})
    with pytest.raises(PerhopError, match=r"`tsw` is a built-in meter; give .* another NAME"):
        plugins.registered("meter")


METER = """\
from perhop import Bytes, Meter


class HalfGreen(Meter):
    \"\"\"Every second packet is green.\"\"\"

    first: bool = True
    seen = 0

    def on_packet(self, packet, now, random):
        self.seen += 1
        return "green" if self.seen % 2 == self.first else "yellow"
"""


def test_commands_take_the_class_and_real_packets_refuse_it(perhop: Perhop, small: Path) -> None:
    (small.parent / "half.py").write_text(METER, encoding="utf-8")
    checked = perhop("check-block", "half:HalfGreen", "rate=1Mbps", "--sequences", "5")
    assert "6 checks passed" in checked.out
    listed = perhop("list", "blocks", "half-green", "--plugin", "half")
    assert "Every second packet is green" in listed.out
    by_name = perhop("check-block", "half-green", "rate=1Mbps", "--plugin", "half", "--sequences", "5")
    assert "6 checks passed" in by_name.out
    text = small.read_text(encoding="utf-8")
    small.write_text(
        text + '\n[profiles]\nhalf = { marker = "half:HalfGreen", rate = "1Mbps" }\n', encoding="utf-8"
    )
    refused = perhop("live", "small.toml")
    assert refused.code == 2
    assert "profiles.half.marker: `half:HalfGreen` is a class in Python" in refused.err
