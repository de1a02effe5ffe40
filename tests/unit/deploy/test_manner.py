"""Which services, without systemd, a restart would not leave as they were."""

from pathlib import PurePosixPath

import pytest

from tuner.deploy.manner import refuse_lost_manner
from tuner.errors import TargetError
from tuner.ports import Service
from tuner.testing.fakes import MemoryHost, completed

SERVICE = Service(
    name="php-fpm", check=None, stop=("stop",), start=("start",), restart=None, reload=None, is_systemd=False,
    pid_file=PurePosixPath("/run/php-fpm.pid"), title="php-fpm: master process",
)  # fmt: skip


def host_of(pid: int, session: int, parent: int, session_of_parent: int) -> MemoryHost:
    """Make a host where the first process of the service has these ids."""
    own, of_parent = f"Pid:\t{pid}\nPPid:\t{parent}\nNSsid:\t{session}", f"NSsid:\t{session_of_parent}"
    text = f"{own}\nPid:\t{parent}\n{of_parent}\ncut 0\n"
    return MemoryHost(commands={"sh": lambda _host, argv, _stdin: completed(argv, stdout=text.encode())})


@pytest.mark.parametrize(
    ("host", "refused"),
    [
        (host_of(88, 88, 1, 0), ""),
        (host_of(1, 1, 0, 0), "is the first process of its container"),
        (host_of(88, 1, 1, 1), "is supervised by process 1, which would notice a restart"),
        (host_of(88, 88, 17, 17), "is supervised by process 17, which would notice a restart"),
    ],
    ids=["a daemon", "a container's first", "a container's init keeps it", "a supervisor keeps it"],
)
def test_what_somebody_keeps_in_the_foreground_is_not_restarted(host: MemoryHost, refused: str):
    if refused:
        with pytest.raises(TargetError, match=refused):
            refuse_lost_manner(host, SERVICE)
    else:
        refuse_lost_manner(host, SERVICE)
