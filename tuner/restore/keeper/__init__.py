"""The keeper: the program on a target that keeps its originals and puts them back.

The shell files beside this module are its source; they are sent as one program.
"""

from collections.abc import Callable
from pathlib import PurePosixPath

from tuner.errors import TargetError
from tuner.ports import Command, Completed, Host
from tuner.restore.journal import HostRecord
from tuner.restore.keeper import requests
from tuner.restore.keeper.replies import Reply, needs_installation, read_reply

LOOK_TIMEOUT_S = 5.0
NOTHING, PRESENT, ADOPTED = "nothing", "present", "adopted"


def ignore(warning: str) -> None:
    """Drop a warning."""


class Keeper:
    """The keeper of one host."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def may_exist(self) -> bool:
        """Check for the keeper's directory; that needs no root."""
        looked = self.host.run(("test", "-d", str(requests.DIRECTORY)), timeout_s=LOOK_TIMEOUT_S)
        return looked.returncode == 0

    def send(self, request: Command) -> Completed:
        """Run one step of the keeper, whatever its outcome."""
        return self.host.run(
            request.argv, timeout_s=request.timeout_s, stdin=request.stdin, as_root=request.as_root
        )

    def send_whole(self, request: Command) -> Completed:
        """Run one step of this version of the keeper, which is installed first where it is not whole."""
        completed = self.send(request)
        if not needs_installation(completed):
            return completed
        last = self.host.run_all(requests.installation())[-1]
        if last.returncode != 0:
            said = last.stderr.decode(errors="replace").strip()
            told = (
                f"the restore agent cannot be installed ({said}). Allow the commands that `tuner check` "
                "lists."
            )
            raise TargetError(f"{self.host.name}: {told}")
        return self.send(request)

    def require(self, request: Command) -> Reply:
        """Run one step and return its reply. Raises as `read_reply` does."""
        return read_reply(self.host.name, self.send(request))

    def ask(self, request: Command, warn: Callable[[str], None] = ignore) -> Reply:
        """Run one step and return its reply. Raises as `read_reply` does.

        Where the keeper itself is gone or damaged, what it kept may still be there: it is installed first.
        """
        reply = read_reply(self.host.name, self.send_whole(request))
        for warning in reply.get("warning", []):
            warn(f"{self.host.name}: {warning}")
        return reply

    def give_back(self, record: HostRecord, *, takes_back: bool = False) -> str:
        """Send the controller's copy of what the host may have lost. Returns the keeper's word for it.

        `adopted`: it had lost it. `present`: it has it, and has yet to put it back. `nothing`: all is back.

        An apply is only given back where `takes_back`: whoever confirmed it may have done so elsewhere.

        Raises TargetError when the keeper cannot be installed, or another tuner has taken the host.
        """
        if not record.originals:
            return NOTHING
        if not takes_back and self.has_lost_apply(record):
            raise TargetError(
                f"{self.host.name}: the host has lost its record of the apply of {record.say('study')} "
                f"(since {record.say('since')}). Somebody may have confirmed this apply. To keep the winner, "
                "run: tuner confirm. To roll back, run: tuner apply STUDY --undo"
            )
        reply = read_reply(self.host.name, self.send_whole(requests.adoption(record)))
        return next((word for word in (ADOPTED, PRESENT) if word in reply), NOTHING)

    def has_lost_apply(self, record: HostRecord) -> bool:
        """Check whether a record is of an apply of which its host knows nothing any more, done or not."""
        if record.say("purpose") != "apply":
            return False
        asked = requests.step("knows", "apply", record.say("session"))
        return "known" not in read_reply(self.host.name, self.send_whole(asked))


def paths_back(reply: Reply) -> tuple[PurePosixPath, ...]:
    """Return the paths that the keeper had to write to put them back."""
    return tuple(PurePosixPath(path) for path in reply.get("back", []))
