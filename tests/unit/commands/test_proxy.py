"""Where `tuner proxy` listens, and for whom."""

import inspect

import pytest

from tuner.cli.fleet_command import proxy
from tuner.commands.proxy import is_for_all


@pytest.mark.parametrize("address", ["127.0.0.1:13000", "127.9.9.9:1", "[::1]:13000", "localhost:13000"])
def test_an_address_of_this_machine_alone_is_for_its_own_processes(address: str):
    assert not is_for_all(address)


@pytest.mark.parametrize(
    "address", ["0.0.0.0:13000", "[::]:13000", "192.0.2.7:13000", "db.example.org:13000"]
)
def test_any_other_address_is_for_whoever_reaches_it(address: str):
    assert is_for_all(address)


def test_nobody_else_reaches_it_unless_asked():
    assert not is_for_all(inspect.signature(proxy).parameters["listen"].default)
