"""A local controller that is stopped, as by Ctrl-Z, before one of the commands that it runs as root.

Run as `python hold_stopped.py STUDY COMMAND_NUMBER` in namespaces of its own; prints what became of it.
"""

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tuner.adapters.hosts.command_runner import Step
from tuner.adapters.hosts.local import LocalHost
from tuner.campaign.prepare import find_target
from tuner.errors import TunerError
from tuner.ports import Completed
from tuner.study import load_study


class StoppingHost(LocalHost):
    """This machine; the process stops itself before a command, once."""

    left: int = -1

    def _run_one(self, step: Step) -> Completed:
        if step.as_root and "beat" not in step.asked:
            self.left -= 1
            if self.left == 0:
                print("stopped before", *step.asked[2:3], flush=True)  # noqa: T201 - the test waits for it
                os.kill(os.getpid(), signal.SIGSTOP)
        return super()._run_one(step)


def main(study: Path, number: int) -> None:
    """Change the target, stop on the way, and tell how it ended."""
    host = StoppingHost()
    found = find_target(load_study(study), host)
    found.target.watchdog_s = 1.0
    try:
        with found.target.hold(lambda _: None):
            host.left = number
            with found.target.deploy(found.space.complete({"worker_processes": 3})):
                host.left = -1
                print("deployed", flush=True)  # noqa: T201
    except TunerError as error:
        print(type(error).__name__, error, flush=True)  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
