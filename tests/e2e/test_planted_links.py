"""A study's folder that came from a stranger: links and other things where tuner's own files belong."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.command_line import CommandLine
from tests.e2e.test_bad_input import refused
from tests.finished_study import finish
from tests.more import leave_to_more
from tuner.study import load_study

USAGE = 2
PRECIOUS = "ssh-ed25519 AAAA somebody@somewhere\n"
COMMANDS = {
    "check": ("check", "study.yaml"),
    "run": ("run", "study.yaml", "--preset", "quick"),
    "show": ("show", "study.yaml"),
    "report": ("report", "study.yaml"),
    "explain": ("explain", "study.yaml"),
    "export": ("export", "study.yaml", "--format", "json"),
    "compare": ("compare", "study.yaml", "default", "default", "--pairs", "2"),
    "compare several": ("compare", "study.yaml", "default", "cached", "values.yaml", "--pairs", "3"),
    "sweep": ("sweep", "study.yaml", "worker_connections", "--values", "4000", "-o", "sweep.md"),
    "curve": ("curve", "study.yaml", "default", "--connections", "10", "-o", "curve.html"),
    "versus": ("versus", "study.yaml", "other.yaml", "-o", "versus.html"),
    "gate": ("gate", "study.yaml", "--baseline", "default", "--pairs", "2", "--summary", "gate.md"),
    "verify": ("verify", "study.yaml"),
    "apply": ("apply", "study.yaml", "--yes"),
}
EVERY = tuple(COMMANDS)
MEASURING = ("compare", "compare several", "sweep", "curve", "versus", "gate")
LOCKING = ("check", "run", *MEASURING)
WHO_OPENS_WHAT = {
    "": EVERY,
    "lock": (*LOCKING, "show"),
    "log": LOCKING,
    "study.db": EVERY,
    **{f"study.db{suffix}": ("show",) for suffix in ("-journal", "-wal", "-shm")},
    "report.html": ("report",),
    "exports": ("show",),
    "comparisons": ("compare", "gate"),
    "contests": ("compare several",),
    "sweeps": ("sweep",),
    "curves": ("curve",),
}
FIRST = [(name, commands[:1]) for name, commands in WHO_OPENS_WHAT.items()]
OTHERS = [(name, commands[1:]) for name, commands in WHO_OPENS_WHAT.items() if commands[1:]]
WRITING = re.compile(r"(?:open|openat|openat2|creat)\(.*O_(?:WRONLY|RDWR|CREAT|TRUNC).* = \d+<([^>]*)>")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A study that has its winner; not to be changed."""
    tuner = CommandLine(tmp_path_factory.mktemp("made"))
    finish(load_study(tuner.write()), {"worker_connections": 2000})
    tuner.write("other.yaml", name="other")
    (tuner.folder / "values.yaml").write_text("worker_connections: 4000\n")
    return tuner.folder


def receive(made: Path, folder: Path) -> CommandLine:
    """Put the study into a folder of its own, beside which the precious file is."""
    shutil.copytree(made, folder / "received")
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "authorized_keys").write_text(PRECIOUS)
    return CommandLine(folder / "received")


def elsewhere(tuner: CommandLine) -> Path:
    return tuner.folder.parent / "elsewhere"


@pytest.fixture
def tuner(tmp_path, made):
    return receive(made, tmp_path)


def plant_link(tuner: CommandLine, name: str) -> Path:
    """Put a link where a file or a folder of the study belongs, to the precious ones."""
    place = tuner.folder / "study.study" / name
    if not name:
        place = tuner.folder / "study.study"
        place.rename(elsewhere(tuner) / "study.study")
        place.symlink_to(elsewhere(tuner) / "study.study")
    elif name in {"exports", "comparisons", "contests", "sweeps", "curves"}:
        place.symlink_to(elsewhere(tuner))
    else:
        place.unlink(missing_ok=True)
        place.symlink_to(elsewhere(tuner) / "authorized_keys")
    return place


RUN_EACH = """
import json, os, pkgutil, sys
import tuner.commands
from tuner.cli import main

for module in pkgutil.iter_modules(tuner.commands.__path__, "tuner.commands."):
    __import__(module.name)
for folder, arguments in json.loads(sys.argv[1]):
    if not (pid := os.fork()):
        os.chdir(folder)
        sys.argv = ["tuner", *arguments]
        main()
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), file=sys.stderr, flush=True)
"""


def run_traced(tuner: CommandLine, trace: Path, *runs: tuple[Path, str]) -> tuple[list[str], set[str]]:
    """Run commands in their folders, each in a process of its own, under one strace.

    Returns what each said, with its exit code behind it, and every file that they or their children opened
    for writing.
    """
    strace = (
        "strace", "-f", "-qq", "-y", "-s", "0", "--seccomp-bpf",
        "-e", "trace=open,openat,openat2,creat", "-o", str(trace),
    )  # fmt: skip
    each = json.dumps([(str(folder), COMMANDS[command]) for folder, command in runs])
    ended = subprocess.run(
        [*strace, sys.executable, "-c", RUN_EACH, each],
        cwd=trace.parent, env=tuner.environment, capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    said = re.findall(r"(?s)(.*?^-?\d+\n)", ended.stderr, re.MULTILINE)
    return said, {match[1] for match in WRITING.finditer(trace.read_text())}


def picture(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("cases", leave_to_more([FIRST, OTHERS]), ids=["the first of each", "others"])
def test_no_command_follows_a_planted_link(made, tmp_path, cases):
    received = {name: receive(made, tmp_path / (name or "all")) for name, _ in cases}
    places = {name: plant_link(tuner, name) for name, tuner in received.items()}
    before = {name: picture(elsewhere(tuner)) for name, tuner in received.items()}
    runs = [(name, command) for name, commands in cases for command in commands]

    said, opened = run_traced(
        received[runs[0][0]], tmp_path / "trace", *((received[name].folder, each) for name, each in runs)
    )

    for (name, command), words in zip(runs, said, strict=True):
        refusal = rf"^tuner: .*{re.escape(places[name].name)}: this is a symbolic link.*\n{USAGE}$"
        assert re.search(refusal, words, re.MULTILINE), (name, command, words)
        assert "Traceback" not in words, (name, command)
    for name, tuner in received.items():
        assert picture(elsewhere(tuner)) == before[name], name
        assert not [path for path in opened if path.startswith(str(elsewhere(tuner)))], name
        assert places[name].is_symlink()


@pytest.mark.parametrize("name", ["lock", "log", "study.db"])
@pytest.mark.parametrize(
    ("kind", "words"), [("a hard link", "2 hard links"), ("a pipe", "this is no regular file")]
)
def test_no_command_is_caught_by_what_is_no_file_of_its_own(tuner, name, kind, words):
    place = tuner.folder / "study.study" / name
    place.unlink(missing_ok=True)
    precious = tuner.folder.parent / "elsewhere" / "authorized_keys"
    if kind == "a hard link":
        place.hardlink_to(precious)
    else:
        os.mkfifo(place)

    completed = tuner.call("run", "study.yaml")

    assert refused(completed, USAGE, name, words)
    assert precious.read_text() == PRECIOUS


def test_a_folder_that_others_may_write_to_is_refused(tuner):
    (tuner.folder / "study.study").chmod(0o777)

    for command in EVERY:
        assert refused(
            tuner.call(*COMMANDS[command]), USAGE, "other users may write to this file", "chmod go-w"
        )


def test_where_the_user_wants_a_report_may_be_a_link(tuner):
    place = tuner.folder.parent / "elsewhere" / "report.html"
    (tuner.folder / "mine.html").symlink_to(place)

    completed = tuner.call("report", "study.yaml", "-o", "mine.html")

    assert completed.returncode == 0, completed.stderr
    assert place.stat().st_size > 10_000


@pytest.mark.parametrize(
    "arguments", [("schema", "-o"), ("init", "nginx", "-o"), ("init", "--study", "nginx-2015", "-o")]
)
def test_what_is_written_anew_is_not_written_through_a_link(tuner, arguments):
    precious = tuner.folder.parent / "elsewhere" / "authorized_keys"
    (tuner.folder / "mine").symlink_to(precious)

    assert refused(tuner.call(*arguments, "mine"), USAGE, "mine: this file already exists")
    assert precious.read_text() == PRECIOUS


def test_an_output_takes_the_place_of_a_hard_link_and_leaves_the_other_name(tuner):
    precious = tuner.folder.parent / "elsewhere" / "authorized_keys"
    (tuner.folder / "mine.html").hardlink_to(precious)

    completed = tuner.call("report", "study.yaml", "-o", "mine.html")

    assert completed.returncode == 0, completed.stderr
    assert precious.read_text() == PRECIOUS
    assert (tuner.folder / "mine.html").stat().st_size > 10_000


@pytest.mark.parametrize("commands", leave_to_more([["report", "show"], ["check"]]))
def test_nothing_outside_is_opened_for_writing(tuner, tmp_path, commands):
    said, opened = run_traced(tuner, tmp_path / "trace", *((tuner.folder, each) for each in commands))

    assert [each.splitlines()[-1] for each in said] == ["0"] * len(commands), said
    assert [path for path in opened if path.startswith(str(tuner.folder))]
    of_the_sandbox = ("/proc/", "/dev/", "/memfd:", "/sys/fs/cgroup/")
    assert not [path for path in opened if not path.startswith((str(tuner.folder), *of_the_sandbox))]
