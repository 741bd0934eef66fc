"""Configurations of twice the size take about twice the work, in every dialect that is written in lines.

Work is the number of lines that the interpreter runs, which no other load of the machine changes. It does not
see what single calls of C code take.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

import pytest
from tests.python.fuzzing.targets import ANSWERS, CONFIGURATIONS
from tests.python.work import lines_run

from perhop import routers
from perhop.errors import PerhopError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DIALECTS = {"xr": "ios-xr", "nxos": "nx-os"}
"""Names of files that begin otherwise than their dialect."""
MOST = 2.3
"""Twice the input, and what sorting and the noise of small inputs add."""
COPIES = 8
NAME = re.compile(rb"\b[A-Z][A-Z0-9_-]{2,}\b")
JUNOS = """class-of-service forwarding-classes class be queue-num 0
class-of-service forwarding-classes class ef queue-num 5
class-of-service classifiers dscp C forwarding-class ef loss-priority low code-points ef
class-of-service schedulers s transmit-rate percent 50
class-of-service scheduler-maps M forwarding-class be scheduler s
class-of-service scheduler-maps M forwarding-class ef scheduler s
firewall policer p if-exceeding bandwidth-limit 1m
firewall policer p if-exceeding burst-size-limit 15k
firewall policer p then discard
firewall family inet filter F term a from dscp ef
firewall family inet filter F term a then policer p"""
JUNOS = "".join(f"set {line}\n" for line in JUNOS.splitlines())
POLICY = "policy-map P\n class class-default\n  shape average 1000000\n"
HTB = "tc qdisc add dev eth0 root handle 1: htb default 1\n"
HTB += "tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n"
LEAF = "tc class add dev eth0 parent 1:1 classid 1:{h} htb rate 1kbit\n"
SHAPER = "set qos policy shaper S bandwidth 100mbit\nset qos policy shaper S default bandwidth 80%\n"
MANY: dict[str, tuple[str, str, str]] = {
    "ios, interfaces": (
        "ios",
        POLICY,
        "interface g0/{n}\n ip address 10.0.0.1 255.0.0.0\n service-policy output P\n",
    ),
    "ios, policies": (
        "ios",
        "",
        "policy-map P{n}\n class V\n  bandwidth percent 9\ninterface g{n}\n service-policy output P{n}\n",
    ),
    "ios, access lists": ("ios", POLICY, "access-list {n} permit ip host 10.0.0.1 any\n"),
    "eos, interfaces": ("eos", "", "interface Ethernet{n}\n tx-queue 3\n  bandwidth percent 30\n"),
    "junos, interfaces": ("junos", JUNOS, "set class-of-service interfaces ge-0/0/{n} scheduler-map M\n"),
    "junos, units": (
        "junos",
        JUNOS + "set class-of-service interfaces xe-0 scheduler-map M\n",
        (
            "set class-of-service interfaces xe-0 unit {n} classifiers dscp C\n"
            "set class-of-service interfaces xe-0 unit {n} shaping-rate 10m\n"
        ),
    ),
    "junos, scheduler maps": (
        "junos",
        JUNOS,
        (
            "set class-of-service scheduler-maps N{n} forwarding-class be scheduler s{n}\n"
            "set class-of-service schedulers s{n} priority low\n"
            "set class-of-service interfaces ge-0/0/{n} scheduler-map N{n}\n"
        ),
    ),
    "junos, deleted": (
        "junos",
        JUNOS,
        "set class-of-service interfaces ge-0/0/{n} scheduler-map M\ndelete interfaces ge-1/0/{n}\n",
    ),
    "junos, policers": (
        "junos",
        JUNOS,
        (
            "set interfaces xe-0/0/{n} unit 0 family inet policer input p\n"
            "set interfaces xe-0/0/{n} unit 0 family inet filter output F\n"
            "set class-of-service interfaces xe-0/0/{n} unit 0 scheduler-map M\n"
        ),
    ),
    "junos, filters of arriving packets": (
        "junos",
        JUNOS,
        (
            "set firewall family inet filter G term t{n} from dscp ef\n"
            "set firewall family inet filter G term t{n} then forwarding-class ef\n"
            "set interfaces xe-0/0/{n} unit 0 family inet filter input G\n"
            "set class-of-service interfaces xe-0/0/{n} unit 0 scheduler-map M\n"
        ),
    ),
    "routeros, queues of one name": ("routeros", "/queue tree\n", "add name=q parent=ether1 max-limit=1M\n"),
    "routeros, simple queues": (
        "routeros",
        "/queue simple\n",
        "add name=q{n} target=10.0.0.{n}/32 max-limit=1M/1M\n",
    ),
    "routeros, parents": (
        "routeros",
        "",
        "/queue tree\nadd name=q{n} parent=e{n} max-limit=1M\n/queue interface\nset e{n} queue=default\n",
    ),
    "tc, classes": (
        "tc",
        HTB,
        LEAF
        + "tc qdisc add dev eth0 parent 1:{h} handle {h}: pfifo limit 100\n"
        + "tc filter add dev eth0 parent 1: prio 1 u32 match ip dsfield 0x20 0xfc flowid 1:{h}\n",
    ),
    "tc, classes that hold htb": (
        "tc",
        HTB,
        LEAF
        + "tc qdisc add dev eth0 parent 1:{h} handle {h}: htb default 1\n"
        + "tc class add dev eth0 parent {h}: classid {h}:1 htb rate 1kbit\n",
    ),
    "tc, deleted classes": ("tc", HTB, LEAF + "tc class del dev eth0 classid 1:{h}\n"),
    "tc, virtual queues of gred": (
        "tc",
        "tc qdisc add dev eth0 root gred setup vqs 4 default 0\n",
        "tc qdisc change dev eth0 root gred limit 60KB min 15KB max 45KB burst 20 avpkt 1000 DP 1\n",
    ),
    "vyos, interfaces": ("vyos", SHAPER, "set qos interface eth{n} egress S\n"),
    "vyos, classes": (
        "vyos",
        SHAPER + "set qos interface eth0 egress S\n",
        (
            "set qos policy shaper S class {n} bandwidth 1mbit\n"
            "set qos policy shaper S class {n} match v ip dscp 8\n"
        ),
    ),
}
"""Elements that a large configuration repeats: the dialect, the text in front of them, and one element."""
PRODUCTS = {
    "ios-catalyst.cfg": "its copies are classes of one policy, which is read for each of its interfaces"
}
"""Files whose copies with other names grow in two dimensions at once."""


def work(text: bytes, dialect: str) -> int:
    """Lines of Python that it takes to read a configuration, whether it is refused or not."""
    source = routers.Source([("file", text)])

    def read() -> None:
        with contextlib.suppress(PerhopError):
            routers.imported(source, ANSWERS, dialect=dialect)

    return lines_run(read)


def repeated(text: bytes, copies: int) -> bytes:
    return text * copies


def with_other_names(text: bytes, copies: int) -> bytes:
    return b"".join(NAME.sub(lambda found, n=number: found[0] + b"-%d" % n, text) for number in range(copies))  # type: ignore[misc]


@pytest.mark.parametrize("copied", [repeated, with_other_names])
@pytest.mark.parametrize(
    "path", [path for path in CONFIGURATIONS if path.suffix != ".json"], ids=lambda path: path.name
)
def test_twice_the_text_takes_twice_the_work(path: Path, copied: Callable[[bytes, int], bytes]) -> None:
    if copied is with_other_names and path.name in PRODUCTS:
        pytest.skip(PRODUCTS[path.name])
    first = re.split(r"[-.]", path.name)[0]
    text, dialect = path.read_bytes() + b"\n", DIALECTS.get(first, first)
    work(copied(text, 1), dialect)  # what is loaded and compiled at first use
    once, twice = (work(copied(text, copies), dialect) for copies in (COPIES, 2 * COPIES))
    assert twice / once < MOST, f"{once} lines of Python, then {twice}"


@pytest.mark.parametrize("name", MANY)
def test_twice_as_many_take_twice_the_work(name: str) -> None:
    dialect, head, each = MANY[name]

    def text(count: int) -> bytes:
        return (head + "".join(each.format(n=n, h=f"{n:x}") for n in range(2, count + 2))).encode()

    work(text(1), dialect)
    once, twice = (work(text(count), dialect) for count in (100, 200))
    assert twice / once < MOST, f"{once} lines of Python, then {twice}"


@pytest.mark.parametrize(("dialect", "first"), [("junos", "class-of-service {"), ("vyos", "qos {")])
@pytest.mark.parametrize("depth", [100, 5000])
def test_too_many_blocks_within_one_another_are_one_error(dialect: str, first: str, depth: int) -> None:
    source = routers.Source([("edge.conf", f"{first}\n{'a {' * depth}\nb c;\n{'}' * depth}\n}}\n".encode())])
    with pytest.raises(PerhopError, match=r"^edge\.conf: line 2: more than 60 blocks .* not closed\?$"):
        routers.imported(source, ANSWERS, dialect=dialect)


def test_policies_within_policies_are_read_once() -> None:
    names = [f"P{n}" for n in range(8)]
    policies = [
        f"policy-map {name}\n"
        + "".join(f" class C{n}\n  bandwidth percent 9\n  service-policy P{at + 1}\n" for n in range(9))
        for at, name in enumerate(names)
    ]
    text = "".join(policies) + "policy-map P8\n class class-default\ninterface g0\n service-policy input P0\n"
    assert work(text.encode(), "ios") < 100_000
