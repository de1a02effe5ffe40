"""Every server adapter of the distribution keeps to its contracts."""

import pytest

from tests.installed import switch_mpm
from tuner.adapters.hosts.local import LocalHost
from tuner.plugins import AdapterKind, adapter_names
from tuner.ports import Host, Sandbox
from tuner.testing.servers import contract_of

TestApache = contract_of("apache")
TestApacheMpm = contract_of("apache-mpm")
TestCaddy = contract_of("caddy")
TestH2o = contract_of("h2o")
TestHaproxy = contract_of("haproxy")
TestNginx = contract_of("nginx")
TestPhpFpm = contract_of("php-fpm")


@pytest.mark.more
class TestApachePrefork(contract_of("apache-prefork")):
    @pytest.fixture
    def machine(self, sandbox: Sandbox) -> Host:
        return switch_mpm(sandbox, "prefork")


@pytest.mark.more
class TestApacheWorker(contract_of("apache-worker")):
    @pytest.fixture
    def machine(self, sandbox: Sandbox) -> Host:
        return switch_mpm(sandbox, "worker")


class TestSysctl(contract_of("sysctl")):
    @pytest.fixture
    def machine(self) -> Host:
        """Return this machine, whose settings are read: a sandbox has not all of them."""
        return LocalHost()


class TestSysfs(contract_of("sysfs")):
    @pytest.fixture
    def machine(self) -> Host:
        """Return this machine, whose settings are read."""
        return LocalHost()


def test_every_registered_server_is_among_them():
    apaches = {TestApache, TestApacheMpm, TestApachePrefork, TestApacheWorker}
    applied = {*apaches, TestCaddy, TestH2o, TestHaproxy, TestNginx, TestPhpFpm, TestSysctl, TestSysfs}

    # What `command` is a study says: tests/integration/test_own_servers.py.
    assert {each.name for each in applied} | {"command"} == set(adapter_names(AdapterKind.SERVER))
