"""Nothing that the SSH libraries raise gets past us."""

import inspect

import invoke.exceptions
import paramiko.ssh_exception
import pytest

from tuner.adapters.hosts.ssh.connection import FOREIGN, translated
from tuner.errors import TargetError

ERRORS = [
    error
    for module in (paramiko.ssh_exception, invoke.exceptions)
    for _, error in inspect.getmembers(module, inspect.isclass)
    if issubclass(error, Exception)
]
SEEN = [
    EOFError(),
    ConnectionResetError(104, "Connection reset by peer"),
    TimeoutError(),
    ValueError("no key"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_every_error_of_the_libraries_is_known(error: type[Exception]):
    assert issubclass(error, FOREIGN)


@pytest.mark.parametrize("error", [*SEEN, paramiko.SSHException("banner")], ids=repr)
def test_an_error_says_where_and_what_to_do_and_keeps_its_cause(error: Exception):
    said = r"ssh://web: it cannot be reached: .+ Check that `ssh "
    with pytest.raises(TargetError, match=said) as told, translated("ssh://web", "it cannot be reached"):
        raise error

    assert told.value.__cause__ is error
