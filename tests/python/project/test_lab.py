"""Containers: the files of `contrib` name what is there; the lab, in network namespaces, forwards packets."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml  # type: ignore[import-untyped]
from tests.python.processes import router_binary

from perhop.routers import Answers, Source, exported, imported
from perhop.scenario import reading

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
CONTAINERS = ROOT / "contrib" / "containers"
LAB = ROOT / "contrib" / "lab" / "branch.clab.yml"
FILES = sorted(CONTAINERS.glob("*.Containerfile"))
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]
ENTRY = CONTAINERS / "perhop-router.sh"
PAGE = (ROOT / "docs" / "containers.md").read_text(encoding="utf-8")

CODEPOINTS = {"VOICE": 46, "BUSINESS": 18, "class-default": 0}
PACKETS = 40
RECEIVER = """\
import socket, sys
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
udp.bind(("10.0.7.2", 5004))
tcp = socket.create_server(("10.0.7.2", 5005))
udp.settimeout(60)
tcp.settimeout(60)
print("ready", flush=True)
counts = {}
while sum(counts.values()) < int(sys.argv[1]):
    _, ancillary, _, _ = udp.recvmsg(2048, 64)
    tos = ancillary[0][2][0]
    counts[tos >> 2] = counts.get(tos >> 2, 0) + 1
print(sorted(counts.items()), flush=True)
connection, _ = tcp.accept()
connection.settimeout(60)
came = 0
while data := connection.recv(65536):
    came += len(data)
print(came, flush=True)
"""
SENDER = """\
import socket, sys, time
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for code in map(int, sys.argv[2:]):
    udp.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, code << 2)
    for _ in range(int(sys.argv[1])):
        udp.sendto(bytes(500), ("10.0.7.2", 5004))
        time.sleep(0.002)
tcp = socket.create_connection(("10.0.7.2", 5005), 60)
tcp.sendall(bytes(1_000_000))
tcp.shutdown(socket.SHUT_WR)
tcp.recv(1)
"""
METRICS = """\
import http.client
connection = http.client.HTTPConnection("127.0.0.1", 9477, timeout=20)
connection.request("GET", "/metrics", headers={"Host": "localhost"})
print(connection.getresponse().read().decode())
"""


def lines(path: Path) -> list[str]:
    """The instructions of a Containerfile, without comments, each on one line."""
    text = re.sub(r"^\\s*#.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def topology() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(LAB.read_text(encoding="utf-8"))["topology"]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_containerfile_copies_files_of_the_repository_that_are_not_ignored(path: Path) -> None:
    ignored = [
        line
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    copied = [
        name
        for line in lines(path)
        if line.startswith("COPY ") and "--from=" not in line
        for name in line.split()[1:-1]
    ]
    assert copied
    for name in copied:
        assert any(one == name or one.startswith(f"{name}/") for one in tracked), name
        assert not any(name == one or name.startswith(f"{one}/") for one in ignored), name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_versions_are_those_of_the_repository(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"^ARG RUST=.*/rust:([\d.]+)-", text, re.MULTILINE) == [WORKSPACE["rust-version"]]
    labels = re.findall(r'image\.version="([^"]+)"', text)
    assert labels == [WORKSPACE["version"]]
    tags = set(re.findall(r"\bperhop[\w-]*:([\d.]+)", text + PAGE + LAB.read_text(encoding="utf-8")))
    assert tags == {WORKSPACE["version"]}
    if "python3" in text:  # that of Debian 12
        least = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
            "requires-python"
        ]
        assert "bookworm" in text
        assert least == ">=3.11"


def test_stages_and_commands_of_the_files_are_those_of_the_page() -> None:
    for path in FILES:
        stages = set(re.findall(r"^FROM \S+ AS (\w+)$", path.read_text(encoding="utf-8"), re.MULTILINE))
        assert path.relative_to(ROOT).as_posix() in PAGE
        for line in PAGE.splitlines():
            if path.name in line and (target := re.search(r"--target (\w+)", line)):
                assert target[1] in stages


def test_the_topology_names_files_images_and_interfaces_that_there_are() -> None:
    nodes, links = topology()["nodes"], topology()["links"]
    tags = set(re.findall(r"--tag (\S+)", PAGE))
    ends = [end.split(":") for link in links for end in link["endpoints"]]
    for name, node in nodes.items():
        assert node["image"].removeprefix("localhost/") in tags
        for bind in node.get("binds", []):
            source, target, mode = bind.split(":")
            assert (LAB.parent / source).is_file()
            assert (target, mode) == ("/etc/perhop-router.toml", "ro")
        given = {device for one, device in ends if one == name}
        for line in node.get("exec", []):
            assert given & set(line.split()), line
    router = (CONTAINERS / "perhop-router.Containerfile").read_text(encoding="utf-8")
    assert 'CMD ["/etc/perhop-router.toml"]' in router
    config = tomllib.loads((LAB.parent / "branch-router.toml").read_text(encoding="utf-8"))
    assert {config[side]["device"] for side in ("inside", "outside")} == {
        device for one, device in ends if one == "router"
    }


def test_the_lab_s_router_is_what_is_exported_of_the_example() -> None:
    name = "branch.cfg"
    source = Source([(name, (ROOT / "examples" / name).read_bytes())])
    scenario = reading.canonical(imported(source, Answers(packet_size=1000.0)).toml)
    done = exported(scenario, "branch.toml", "perhop-router", devices="eth1,eth2")
    ours = tomllib.loads((LAB.parent / "branch-router.toml").read_text(encoding="utf-8"))
    assert ours.pop("metrics") == "127.0.0.1:9477"
    assert ours == tomllib.loads(done.text)


def capabilities() -> str:
    """The capabilities that the page gives a router's container, as setpriv takes them."""
    (given,) = re.findall(r"--cap-drop all --cap-add ([\w,]+) ", PAGE)
    return "".join(f",+{name}" for name in given.split(","))


def ip(words: str) -> None:
    done = subprocess.run(["ip", *words.split()], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"ip {words}: {done.stderr.strip()}")


@dataclass(frozen=True)
class Namespaces:
    """The nodes of a topology as network namespaces."""

    tag: str

    def name(self, node: str) -> str:
        return f"perhop-{self.tag}-{node}"

    def within(self, node: str, *command: str | Path, **options: Any) -> subprocess.Popen[str]:  # noqa: ANN401
        words = ["ip", "netns", "exec", self.name(node), *map(str, command)]
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, text=True, **options)

    def output(self, node: str, *command: str | Path) -> str:
        with self.within(node, *command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            said, _ = process.communicate(timeout=60)
        assert process.returncode == 0, said
        return said

    def connect(self, links: list[dict[str, Any]]) -> None:
        """Both ends of each link, up, as containerlab leaves them."""
        for link in links:
            (one, device), (other, far) = (end.split(":") for end in link["endpoints"])
            ip(f"-n {self.name(one)} link add {device} type veth peer name {far} netns {self.name(other)}")
            ip(f"-n {self.name(one)} link set {device} up")
            ip(f"-n {self.name(other)} link set {far} up")


@contextmanager
def namespaces(nodes: dict[str, Any]) -> Iterator[Namespaces]:
    """A namespace for each node, gone at the end whatever happens."""
    made = Namespaces(str(os.getpid()))
    try:
        for node in nodes:
            try:
                ip(f"netns add {made.name(node)}")
                ip(f"-n {made.name(node)} link set lo up")
            except OSError as why:
                pytest.skip(f"no network namespaces here: {why}")
        yield made
    finally:
        for node in nodes:
            subprocess.run(["ip", "netns", "del", made.name(node)], capture_output=True, check=False)


def said(path: Path, process: subprocess.Popen[str], text: str) -> None:
    """Wait until a process says this; fail if it ends before."""
    while text not in path.read_text(encoding="utf-8"):
        assert process.poll() is None, path.read_text(encoding="utf-8")
        time.sleep(0.02)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="namespaces with veth pairs need root"
)
@pytest.mark.skipif(
    not all(shutil.which(program) for program in ("ip", "ethtool", "setpriv")),
    reason="needs ip (iproute2), ethtool and setpriv (util-linux)",
)
@pytest.mark.skipif(router_binary() is None, reason="no perhop-router: cargo build --package perhop-router")
def test_the_lab_in_namespaces_forwards_each_codepoint_through_its_queue(tmp_path: Path) -> None:
    nodes, links = topology()["nodes"], topology()["links"]
    binary = router_binary()
    assert binary is not None
    (bind,) = nodes["router"]["binds"]
    config = LAB.parent / bind.split(":")[0]
    log = tmp_path / "log"
    path = {"PATH": f"{binary.parent}{os.pathsep}{os.environ['PATH']}"}
    with namespaces(nodes) as lab, log.open("w", encoding="utf-8") as output:
        # As containers do: the router starts before its interfaces are there.
        router = lab.within(
            "router", "sh", ENTRY, config, env=os.environ | path, stdout=output, stderr=output
        )
        try:
            said(log, router, "no mistakes found")
            lab.connect(links)
            for name, node in nodes.items():
                for command in node.get("exec", []):
                    lab.output(name, *command.split())
            said(log, router, "forwarding between eth1 (inside) and eth2 (outside)")
            receiver = lab.within(
                "server", sys.executable, "-c", RECEIVER, str(3 * PACKETS), stdout=subprocess.PIPE
            )
            with receiver:
                assert receiver.stdout is not None
                assert receiver.stdout.readline() == "ready\n"
                lab.output(
                    "staff", sys.executable, "-c", SENDER, str(PACKETS), *map(str, CODEPOINTS.values())
                )
                came = sorted((code, PACKETS) for code in CODEPOINTS.values())
                assert receiver.stdout.readline() == f"{came}\n"
                assert receiver.stdout.readline() == "1000000\n"
            # Metrics are copied once a second.
            while any(sent(lab, queue) < PACKETS for queue in CODEPOINTS):
                assert router.poll() is None, log.read_text(encoding="utf-8")
                time.sleep(0.1)
            metrics = lab.output("router", sys.executable, "-c", METRICS)
            assert sent(lab, "VOICE") == PACKETS
            assert sent(lab, "BUSINESS") == PACKETS
            merged = re.findall(
                r'^perhop_refused_frames_total\{.*reason="merged"\} (\d+)$', metrics, re.MULTILINE
            )
            assert merged
            assert set(merged) == {"0"}, "packets were merged: the offload of a host is on"
        finally:
            router.send_signal(signal.SIGTERM)
            router.wait(timeout=30)
    assert router.returncode == 0, log.read_text(encoding="utf-8")


def sent(lab: Namespaces, queue: str) -> int:
    """Packets that a queue has sent."""
    metrics = lab.output("router", sys.executable, "-c", METRICS)
    found = re.findall(
        rf'^perhop_queue_sent_packets_total\{{link="upstream",class="{queue}",.*\}} (\d+)$',
        metrics,
        re.MULTILINE,
    )
    return sum(map(int, found))


def test_a_router_without_its_interface_or_with_a_mistake_ends_with_one_line(tmp_path: Path) -> None:
    binary = router_binary()
    if binary is None or shutil.which("ip") is None:
        pytest.skip("no perhop-router (cargo build --package perhop-router), or no ip (iproute2)")
    environment = os.environ | {
        "PATH": f"{binary.parent}{os.pathsep}{os.environ['PATH']}",
        "PERHOP_WAIT": "0",
    }
    config = tmp_path / "router.toml"

    def run(text: str) -> subprocess.CompletedProcess[str]:
        config.write_text(text, encoding="utf-8")
        words = ["sh", str(ENTRY), str(config)]
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)

    text = '[inside]\ndevice = "INSIDE"   # "no"\nkind = "packet"\n'
    text += '[outside]\ndevice = "OUTSIDE"\nkind = "packet"\n'
    done = run(text)
    assert done.returncode == 1
    assert done.stderr == "error: no interface INSIDE within 0 s; the topology must give the router one\n"
    done = run(text + "rates = 1\n")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
