"""The machine that tuner itself runs on."""

import os
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import PurePosixPath

from tuner.adapters.hosts.command_runner import PSEUDO, SANDBOX_PROGRAMS, Step
from tuner.adapters.hosts.local import commands, files
from tuner.adapters.hosts.local.sandbox import open_sandbox
from tuner.ports import Argv, Completed, FileState, Process, Sandbox

DIES_WITH_THE_TUNER: Argv = ("setpriv", "--pdeathsig", "KILL", "--")


class LocalHost(commands.LocalRunner):
    """This machine; private servers run in sandboxes, without sudo for ordinary users."""

    def read(self, path: PurePosixPath) -> FileState:
        return files.read_file(os.path.normpath(path), shown=str(path))

    def write(self, path: PurePosixPath, state: FileState) -> None:
        # Files under /etc are often links (sites-enabled); what they lead to is what has to change.
        target = os.path.realpath(path)
        write = files.write_pseudo if target.startswith(PSEUDO) else files.write_file
        write(target, state, shown=str(path))

    def sandbox(self, *, share: PurePosixPath | None = None) -> AbstractContextManager[Sandbox]:
        with self.naming_packages():
            for program in SANDBOX_PROGRAMS:
                commands.require_program(program)
        return open_sandbox(share)

    def _run_one(self, step: Step) -> Completed:
        commands.require_usable(step)
        if not step.as_root:
            return commands.run_to_end(replace(step, enters=DIES_WITH_THE_TUNER))
        # What root has begun comes to its end: a service that was stopped would stay so. sudo allows the very
        # command that was asked for, hence nothing between.
        before = commands.SUDO if os.geteuid() != 0 else ()
        return commands.run_to_end(replace(step, enters=before), ends_by_itself=True)

    def _start(self, step: Step) -> Process:
        commands.require_usable(step)
        popen = commands.spawn(replace(step, enters=DIES_WITH_THE_TUNER).command)
        return commands.StartedProcess(popen, popen.pid)
