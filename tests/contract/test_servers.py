"""Every server adapter of the distribution keeps to its contracts."""

import pytest

from tuner.adapters.hosts.local import LocalHost
from tuner.plugins import Kind, adapter_names
from tuner.ports import Host
from tuner.testing.servers import contract_of

TestApache = contract_of("apache")
TestH2o = contract_of("h2o")
TestNginx = contract_of("nginx")
TestPhpFpm = contract_of("php-fpm")


class TestSysctl(contract_of("sysctl")):
    @pytest.fixture
    def machine(self) -> Host:
        """Return this machine, whose settings are read: a sandbox has not all of them."""
        return LocalHost()


def test_every_registered_server_is_among_them():
    applied = {TestApache, TestH2o, TestNginx, TestPhpFpm, TestSysctl}

    assert {each.name for each in applied} == set(adapter_names(Kind.SERVER))
