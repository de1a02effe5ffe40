"""How many threads an installed h2o serves with."""

from pathlib import PurePosixPath

from tests.unit.adapters.servers.h2o.layouts import DEBIAN, find
from tuner.adapters.servers.h2o import H2o
from tuner.ports import FileState
from tuner.testing.fakes import MemoryHost, completed

STARTER, OLD, SERVER, KEEPS_KEYS = 7, 8, 9, 10
PROCESSES = {  # process → parent, children, threads, command line
    STARTER: (1, f"{OLD} {SERVER}", 1, "perl\0-x\0/usr/share/h2o/start_server\0--\0/usr/bin/h2o\0"),
    OLD: (STARTER, "", 9, "/usr/bin/h2o\0-c\0/etc/h2o/h2o.conf\0"),
    SERVER: (STARTER, f"{KEEPS_KEYS}", 5, "/usr/bin/h2o\0-c\0/etc/h2o/h2o.conf\0"),
    KEEPS_KEYS: (SERVER, "", 3, "/usr/bin/h2o\0-c\0/etc/h2o/h2o.conf\0"),
}


def test_the_process_that_keeps_the_private_keys_serves_nobody():
    host = MemoryHost(commands={"curl": lambda _host, argv, _stdin: completed(argv, returncode=7)})
    for pid, (parent, children, threads, command) in PROCESSES.items():
        files = {
            f"/proc/{pid}/task/{pid}/children": children, f"/proc/{pid}/cmdline": command,
            f"/proc/{pid}/status": f"PPid:\t{parent}\nThreads:\t{threads}\n",
        }  # fmt: skip
        host.files |= {PurePosixPath(path): FileState(content=text.encode()) for path, text in files.items()}

    assert H2o().in_force(host, host, {"num-threads": 4}, find(DEBIAN), STARTER) == {"num-threads": 4}
