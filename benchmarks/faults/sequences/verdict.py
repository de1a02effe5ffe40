"""What has to hold after each step of a sequence."""

import os
import time
from collections.abc import Callable, Iterator

from benchmarks.faults.sequences import look
from benchmarks.faults.sequences.look import Copy, State
from benchmarks.faults.sequences.servers import PAGE
from benchmarks.faults.sequences.world import Ended, World

REFUSED = (2, 3)
NOT_BACK = 4
PATIENCE_S = 8.0


def judge(world: World, ended: Ended | None = None) -> Iterator[str]:
    """Yield what must not be, a sentence each."""
    there = world.scan()
    on_host = list(look.copies_on(world.host))
    copies = [*on_host, *look.copies_here(world.controllers)]
    for path in sorted({*there, *world.truth}):
        if path not in look.OWN and not (path == look.SETTING and world.is_value_free):
            yield from _judge_path(path, there.get(path), world.truth.get(path), copies)
    if not world.is_taken and not any(each.is_live for each in on_host):
        yield from _judge_rest(world, there)
    if world.serves:
        yield from _judge_service(world, ended)


def _judge_path(path: str, found: State | None, wanted: State | None, copies: list[Copy]) -> Iterator[str]:
    if found == wanted:
        return
    own = [each for each in copies if each.path == path]
    if not any(each.is_live for each in own):
        yield f"LEFT {path}: is {found}, somebody else wrote {wanted}, and tuner knows nothing of it"
    if found is not None and wanted is not None and found.manner != wanted.manner:
        yield f"MODE {path}: is {found}, and somebody else made it {wanted}"
    if found is not None and wanted is not None and found.content == wanted.content:
        return
    if wanted is not None and not any(each.state and each.state.content == wanted.content for each in own):
        yield f"LOST {path}: {wanted}, which somebody else wrote, is nowhere; there is {found}"
    written = {each for copy in own for each in copy.written}
    if found is not None and not path.startswith("/proc") and look.checksum(found.content) not in written:
        yield f"TORN {path}: {found} is nobody's; somebody else wrote {wanted}"


def _judge_rest(world: World, there: dict[str, State]) -> Iterator[str]:
    # Where somebody has removed what is watched, its watchdog removes them when it sees that.
    if not _soon(lambda: not _own_files(world)):
        yield f"REST {', '.join(_own_files(world))}: is left, and nothing has to be put back"
    for path in there:
        if ".tuner-" in path:
            yield f"REST {path}: is left, and nothing has to be put back"
    if not _soon(lambda: not look.steps_of(world.host)):
        yield "REST a watchdog is left, and nothing has to be put back"


def _own_files(world: World) -> list[str]:
    return [path for path in look.OWN if os.path.lexists(world.host.root / path[1:])]


def _judge_service(world: World, ended: Ended | None) -> Iterator[str]:
    if _soon(lambda: world.answer() == (200, PAGE.encode()) and world.runs()):
        return
    status, body = world.answer()
    said = ended.said if ended else ""
    if ended is None or ended.code in {0, *REFUSED} or world.tuned.unit not in said:
        yield f"DOWN the server answers {status} with {body[:60]!r}; the last command said {said[-300:]!r}"
    else:
        world.serves = False


def _soon(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def fingerprint(world: World) -> dict[str, State]:
    """Return all files but those that guard the way back over a reboot."""
    return {path: state for path, state in world.scan().items() if path not in look.OWN}
