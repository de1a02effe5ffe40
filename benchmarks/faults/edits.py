"""Faults that are somebody's work: another hand edits files while a run goes on."""

import shutil
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.faults.kinds import Kind, Promise, Run, processes_of_step
from benchmarks.faults.look import changed_files
from tests.testbed.namespaces import kill_each

SETTING = "/proc/sys/net/core/somaxconn"
LINE = b"another hand wrote this\n"
SET_BY_HAND = b"7777\n"
IN_PLACE = 0.5
ENDS_WITHIN_S = 25.0


def edit_changed_file(run: Run) -> None:
    """Another hand edits what tuner has changed; the run finds that out at its next change."""
    edit(run, _choose(run))
    _await_end(run)


def edit_other_file(run: Run) -> None:
    """Another hand edits a file of the server that tuner leaves alone."""
    edit(run, str(run.server.configuration))
    time.sleep(run.rng.uniform(0, 4))
    run.end()


def edit_under_lock(run: Run) -> None:
    """Another hand edits a file after the keeper took its lock, before or after it writes that file."""
    path = _choose(run)
    deadline = time.monotonic() + ENDS_WITHIN_S
    while not (found := processes_of_step(run.host, "change")):
        if run.process.poll() is not None or time.monotonic() > deadline:
            break
    time.sleep(run.rng.uniform(0, 0.15))
    kill_each(found, signal.SIGSTOP)
    edit(run, path)
    kill_each(found, signal.SIGCONT)
    _await_end(run)


def edit(run: Run, path: str) -> None:
    """Add a line, in place or as editors do, by a new file; or set a setting."""
    if path == SETTING:
        run.originals[path] = run.merged[path] = run.setting
        run.edited[path] = SET_BY_HAND
        run.host.run(["tee", path], stdin=SET_BY_HAND)
        return
    file = run.host.root / path.lstrip("/")
    line = (b"; " if "/php/" in path else b"# ") + LINE
    content = (file.read_bytes() if file.exists() else b"") + line
    run.originals[path] = run.found.get(path)
    run.merged[path] = run.found[path] + line if path in run.found else None
    run.edited[path] = content
    if run.rng.random() < IN_PLACE:
        with file.open("ab") as opened:
            opened.write(line)
    else:
        _replace(file, content)


def _replace(file: Path, content: bytes) -> None:
    new = file.with_name(f".{file.name}.swp")
    new.write_bytes(content)
    if file.exists():
        shutil.copystat(file, new)
    new.rename(file)


def _choose(run: Run) -> str:
    return run.rng.choice(changed_files(run.host) or [SETTING])


def _await_end(run: Run) -> None:
    """Wait until the run has noticed; politely end one that does not."""
    deadline = time.monotonic() + ENDS_WITHIN_S
    while run.process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    if run.process.poll() is None:
        run.notes.append(f"the run went on for {ENDS_WITHIN_S:.0f} s after an edit of a file that it changes")
        run.process.terminate()


OF_OTHERS: Mapping[str, Kind] = {
    "edit of a changed file": Kind(strike=edit_changed_file, promise=Promise.EDIT_STAYS, needs_change=True),
    "edit of another file": Kind(strike=edit_other_file),
    "edit between lock and write": Kind(
        strike=edit_under_lock, promise=Promise.EDIT_STAYS, needs_change=True
    ),
}
