"""A controller of its own, to be killed: arms a private machine, changes it, and stays.

Run as `python hold_lease.py FIRST_PID STATE_DIRECTORY WATCHDOG_S`.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.integration.private_machine import CONFIGURATION, DEMO, SETTING, PrivateHost
from tuner.restore.journal import Journal
from tuner.restore.lease import Lease


def main(first_pid: int, directory: Path, watchdog_s: float) -> None:
    """Hold the machine until killed."""
    host = PrivateHost(first_pid)
    lease = Lease(host, journal=Journal(directory), study="to be killed", watchdog_s=watchdog_s)
    lease.arm([DEMO])
    lease.note_changed(
        host.run_all((lease.command_to_change({CONFIGURATION: b"demo 2\n", SETTING: b"512\n"}),))
    )
    host.sh("/srv/demo stop; /srv/demo start")
    print("holding", flush=True)  # noqa: T201 - the test waits for it
    time.sleep(60)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
