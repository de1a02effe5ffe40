"""Lines of the kernel's log count for this host only where they are about it, and not about a container."""

import re
import socket
from pathlib import Path

import pytest

from tuner.adapters.hosts.local import LocalHost
from tuner.advice.findings import Finding, Level, SeenServer, judge
from tuner.advice.host_look import find_here, find_queues
from tuner.advice.log_lines import Here, LogLine, cut_messages
from tuner.advice.rules import FOLDER, read_rules
from tuner.ports import Scalar

RULES = read_rules(FOLDER / "kernel.yaml")
HERE = Here(network=4026531840, ports=frozenset({22, 80}))
FULL = "nf_conntrack: nf_conntrack: table full"
FLOOD = "TCP: request_sock_TCP: Possible SYN flooding on port"


def find(message: str, scope: dict[str, Scalar] | None = None) -> list[Finding]:
    """Return what a line of the kernel's log proves."""
    line = LogLine(text=f"2026-11-26T18:45:56,123456+00:00 {message}", source="dmesg", at_s=0.0)
    seen = SeenServer(
        server="kernel", rules=RULES, scope=scope or {}, current={}, kernel={}, files={}, log=(),
        kernel_log=tuple(cut_messages([line], RULES.file.message)), now_s=0.0, started_s=0.0, here=HERE,
    )  # fmt: skip
    return list(judge(seen))


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        (f"{FULL}, dropping packet", "connection_table"),
        (f"{FULL} in netns 4026531840, dropping packet", "connection_table"),
        (f"{FULL} in netns 4026532999, dropping packet", "container_connection_table"),
        ("Out of memory: Killed process 812 (nginx) total-vm:305868kB", "out_of_memory"),
        ("Memory cgroup out of memory: Killed process 812 (php-fpm8.2)", "container_memory"),
        (f"{FLOOD} 80. Sending cookies.", "syn_cookies"),
        (f"{FLOOD} [::]:80. Sending cookies.", "syn_cookies"),
        (f"{FLOOD} 0.0.0.0:8080. Sending cookies.", "container_syn_cookies"),
    ],
)
def test_a_line_is_about_this_host_or_about_a_container(message: str, rule: str):
    found = [(each.rule, each.level) for each in find(message, {"cookies_sent_ever": 0, "syn_drops_ever": 3})]

    assert found == [(f"kernel.{rule}", Level.NEXT)]


def test_a_flood_of_a_container_at_a_port_of_this_host_is_not_its_own():
    assert find(f"{FLOOD} 80. Sending cookies.", {"cookies_sent_ever": 0, "syn_drops_ever": 0}) == []


def test_the_network_and_the_ports_of_a_host_are_known():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        here = find_here(LocalHost())
        port = listening.getsockname()[1]

    (network,) = re.findall(r"\d+", str(Path("/proc/self/ns/net").readlink()))
    assert here.network == int(network)
    assert port in here.ports


def test_a_setting_of_no_search_space_has_its_value_now():
    (finding,) = find(f"{FULL}, dropping packet", {"conntrack": 10, "conntrack_max": 65536})

    assert [(each.current, each.value) for each in finding.proposals] == [(65536, 262144)]


def test_what_is_not_known_is_left_out():
    (finding,) = find(f"{FULL}, dropping packet")

    assert finding.limit == "Limit of tracked connections"
    assert finding.proposals == ()


@pytest.mark.parametrize(
    ("available_mib", "expected"),
    [(300, ("kernel.out_of_memory", Level.NOW)), (3000, ("kernel.container_memory", Level.NEXT))],
)
def test_kills_on_a_host_with_free_memory_are_those_of_a_control_group_of_anybody(
    available_mib: int, expected: tuple[str, Level]
):
    found = find("", {"oom_kills": 1, "look_s": 1.0, "available_mib": available_mib, "memory_mib": 4096})

    assert [(each.rule, each.level) for each in found] == [expected]


@pytest.mark.parametrize(
    ("waiting", "limit", "somaxconn", "proposed"),
    [
        (4, 3, 4096, {"backlog": 4096}),
        (129, 128, 128, {"backlog": 4096, "net.core.somaxconn": 4096}),
        (0, 511, 4096, {"listen": None}),
    ],
    ids=["its own backlog is the limit", "somaxconn is the limit", "no queue is full at the moment"],
)
def test_somaxconn_is_proposed_only_where_it_limits_the_full_queue(waiting, limit, somaxconn, proposed):
    queue: dict[str, Scalar] = {
        "fullest_waiting": waiting, "fullest_limit": limit, "fullest_address": "*:9999",
    }  # fmt: skip
    scope = {**queue, "somaxconn": somaxconn, "net_core_somaxconn": somaxconn, "look_s": 1.0}

    (found,) = find("", {**scope, "listen_overflows": 8})

    assert {each.name: each.value for each in found.proposals} == proposed
    assert any("*:9999" in each.text for each in found.evidence) is (waiting > 0)


def test_the_fullest_queue_of_a_host_is_found_with_its_address():
    with socket.create_server(("127.0.0.1", 0), backlog=1) as listening:
        waiting = [socket.create_connection(listening.getsockname()) for _ in range(2)]
        port = listening.getsockname()[1]
        found = find_queues(LocalHost())
        for each in waiting:
            each.close()

    assert (found["fullest_waiting"], found["fullest_limit"]) == (2, 1)
    assert found["fullest_address"] == f"127.0.0.1:{port}"
