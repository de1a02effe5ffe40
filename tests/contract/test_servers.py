"""Every server adapter of the distribution keeps to its contracts."""

from typing import cast

import pytest

from tuner.adapters.hosts.local import LocalHost
from tuner.plugins import Kind, adapter_names
from tuner.ports import Host, Sandbox
from tuner.testing.machines import ANSWER_S, CopiedMachine, succeed
from tuner.testing.servers import contract_of

TestApache = contract_of("apache")
TestApacheMpm = contract_of("apache-mpm")
TestCaddy = contract_of("caddy")
TestH2o = contract_of("h2o")
TestHaproxy = contract_of("haproxy")
TestNginx = contract_of("nginx")
TestPhpFpm = contract_of("php-fpm")


def switch_mpm(sandbox: Sandbox, wanted: str) -> Host:
    """Return a copy of this machine on which an administrator has chosen another MPM."""
    machine = CopiedMachine(sandbox)
    for command in (("a2dismod", "-q", "mpm_event"), ("a2enmod", "-q", f"mpm_{wanted}")):
        succeed(machine.run(command, timeout_s=ANSWER_S))
    return cast("Host", machine)


class TestApachePrefork(contract_of("apache-prefork")):
    @pytest.fixture
    def machine(self, sandbox: Sandbox) -> Host:
        return switch_mpm(sandbox, "prefork")


class TestApacheWorker(contract_of("apache-worker")):
    @pytest.fixture
    def machine(self, sandbox: Sandbox) -> Host:
        return switch_mpm(sandbox, "worker")


class TestSysctl(contract_of("sysctl")):
    @pytest.fixture
    def machine(self) -> Host:
        """Return this machine, whose settings are read: a sandbox has not all of them."""
        return LocalHost()


def test_every_registered_server_is_among_them():
    apaches = {TestApache, TestApacheMpm, TestApachePrefork, TestApacheWorker}
    applied = {*apaches, TestCaddy, TestH2o, TestHaproxy, TestNginx, TestPhpFpm, TestSysctl}

    # What `command` is a study says: tests/integration/test_own_servers.py.
    assert {each.name for each in applied} | {"command"} == set(adapter_names(Kind.SERVER))
