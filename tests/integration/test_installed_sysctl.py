"""Kernel settings of a machine: what is active and can be changed. A sandbox stands for the machine."""

from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from tests.installed import mount
from tuner.adapters.hosts.local import LocalHost
from tuner.adapters.servers.sysctl import Sysctl
from tuner.errors import ConfigRejected, TargetError, UsageError
from tuner.ports import FileState, Sandbox

SOMAXCONN = PurePosixPath("/proc/sys/net/core/somaxconn")
WMEM = PurePosixPath("/proc/sys/net/ipv4/tcp_wmem")


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with LocalHost().sandbox() as opened:
        # Its own is read-only, unlike that of a machine.
        mount(opened, "-t", "proc", "proc", "/proc")
        yield opened


def test_only_what_differs_is_written_and_is_in_force_then(sandbox):
    before = Sysctl().find(sandbox)
    current = before.facts.current
    asked = {
        "net.core.somaxconn": int(current["net.core.somaxconn"]) + 1000,
        "net.ipv4.tcp_wmem[1]": int(current["net.ipv4.tcp_wmem[1]"]) + 4096,
        "net.ipv4.tcp_wmem[2]": current["net.ipv4.tcp_wmem[2]"],
        "net.ipv4.tcp_fin_timeout": current["net.ipv4.tcp_fin_timeout"],
    }

    files = Sysctl().rewrite(asked, before)
    for path, content in files.items():
        sandbox.write(path, FileState(content=content))

    assert files.keys() == {SOMAXCONN, WMEM}
    assert len(files[WMEM].split()) == 3
    assert Sysctl().in_force(sandbox, sandbox, asked, before, 0) == asked
    assert before.service is None


def test_what_is_in_force_is_no_change(sandbox):
    before = Sysctl().find(sandbox)
    asked = {name: value for name, value in before.facts.current.items() if name.startswith("net.core.")}

    assert Sysctl().rewrite(asked, before) == {}


def test_keys_that_can_only_be_read_are_not_offered_and_refused_when_asked_for(sandbox):
    mount(sandbox, "--bind", "-o", "ro", "/proc/sys/net/core", "/proc/sys/net/core")

    before = Sysctl().find(sandbox)

    assert "net.ipv4.tcp_available_congestion_control" not in before.facts.current
    assert "net.core.somaxconn" not in before.facts.current
    assert "net.ipv4.tcp_wmem[1]" in before.facts.current
    with pytest.raises(
        ConfigRejected,
        match=r"net\.core\.somaxconn: this host does not have this setting, or has it read-only",
    ):
        Sysctl().rewrite({"net.core.somaxconn": 9999}, before)


def test_a_container_that_may_change_nothing_is_named(sandbox):
    mount(sandbox, "--bind", "-o", "ro", "/proc/sys", "/proc/sys")

    with pytest.raises(TargetError, match="read-only here, for example in a container"):
        Sysctl().find(sandbox)


def test_what_protects_the_machine_is_not_tuned_here_either(sandbox):
    with pytest.raises(UsageError, match="protects the machine"):
        Sysctl().rewrite({"net.ipv4.tcp_syncookies": 0}, Sysctl().find(sandbox))


def test_the_secrets_of_the_kernel_are_not_read(sandbox):
    assert not [name for name in Sysctl().find(sandbox).facts.current if name.endswith("_key")]
