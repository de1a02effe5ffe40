"""A study that was run, for the tests of what comes after."""

import pytest

from tests.e2e.command_line import CommandLine
from tests.e2e.traces import picture, unchanged

BUDGET = ("--preset", "quick", "--minutes", "0.5", "--trials", "4")
NGINX = "sendfile, access_log_buffer, open_file_cache"
KERNEL = "net.core.somaxconn, net.ipv4.tcp_notsent_lowat"


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """One short real study of nginx and the kernel, run to its end."""
    tuner = CommandLine(tmp_path_factory.mktemp("study"))
    space = f"nginx, sysctl-net, {{only: [{NGINX}, {KERNEL}]}}"
    study = tuner.write(server="nginx, sysctl", space=space, connections=50)
    before = picture()
    completed = tuner.run_in_peace("run", study, *BUDGET)
    assert completed.returncode in {0, 1}, completed.stderr
    assert unchanged(before)
    return tuner, study, completed
