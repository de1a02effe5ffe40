"""Studies of strangers: a finished study whose folder and database somebody has changed, and who reads it.

Each is played in this process: what a command prints, how it ends, and what Python opened for writing or ran
meanwhile, as its audit hook tells.
"""

import contextlib
import io
import json
import math
import os
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, NoReturn

from tests.unit.adapters.servers.nginx import layouts
from tests.unit.simulated_study import FINGERPRINT
from tests.unit.simulation import (
    SMALL_PLAN,
    TUNED,
    SimulatedHost,
    SimulatedRunner,
    make_campaign,
    make_setup,
    open_on_disk,
    space_of,
    write_study,
)
from tuner import cli
from tuner.adapters.servers.nginx import Nginx
from tuner.campaign.campaign import run_campaign
from tuner.campaign.pairs import Pairing, measure_pairs
from tuner.commands.outputs import write_export
from tuner.commands.session import Reading, read
from tuner.ports import Facts
from tuner.records import Role, Trial
from tuner.restore.journal import find_state_directory
from tuner.space import Space, SpaceFacts, facts_to_json
from tuner.statistics.ranking import DEFAULT_ARM, WINNER_ARM
from tuner.study import Study, load_study
from tuner.study.facts import CONFIRMATION, PRESET, SPACE_FACTS, VERDICT, Confirmation
from tuner.study.storage import Opening, Storage
from tuner.testing.fakes import completed

STUDY = "simulated.yaml"
MOST_S = 10
"""Of a processor: how busy the machine is says nothing of a study."""
GIVEN_UP_S = 300
MEANT = frozenset({0, 2})
COMMANDS = (
    ("show",), ("show", "--json"), ("show", "--csv"), ("explain",), ("report",),
    ("export", "--format", "json"),
)  # fmt: skip
SHELL = "export --format shell"
"""By the functions that the command calls, on a host in memory where nginx is installed."""
SLOWER = tuple(" ".join(each) for each in (*COMMANDS[1:], (SHELL,)))
FACTS = SpaceFacts(
    names={"cores": 2, "memory_mib": 7900, "connections": 100, "open_files_max": 1048576, "somaxconn": 4096},
    versions={"nginx": (1, 22, 1)},
)
INSTALLED = {layouts.MAIN: b"events{}http{keepalive_requests 9;open_file_cache off;server{listen 80;}}"}
CONTROL = set(map(chr, (*range(9), *range(11, 32), 127, 0x202E, 0x2066)))

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 7, 2**31, 2**63, 10**30, -(10**18), 0.5, -0.0, 1e-300, 1e300, -1e300,
    math.nan, math.inf, -math.inf, "", "0", "nan", "on", "off", "default", "winner", "confirm", "control",
    "running", "failed", "complete", "thorough", "goodput", "goodput_per_cpu", "\u202egnp.exe", "a\x1b[2Jb",
    "\x00", "../../../etc/passwd", "/etc/shadow", "$(reboot)", "{{ 7 * 7 }}",
    "<script>alert(1)</script>",
    "=cmd|' /C calc'!A0", "x" * 100_000, [], {}, [[]], [None], {"": ""}, [0, 1], {"default": 1.0},
    {"worker_connections": 10**9}, {"load_module": "x.so"}, ["sh", "-c", "reboot"],
)  # fmt: skip
CELLS: tuple[Any, ...] = (
    None, "", "x", "{", "[" * 5000, "nan", b"\xff\xfe", b"", -1, 0, 7, 2**62, 1e308, math.inf, "RUNNING",
    "FAIL", "WAITING", "MINIMIZE", "NOT_SET", "2020-01-01 00:00:00", "99999-13-99", "x" * 100_000,
)  # fmt: skip
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one command ended on one study."""

    study: str
    changed: str
    """What was done to the study."""
    command: str
    code: int
    seconds: float
    said: str
    outside: tuple[str, ...]
    """What was opened for writing, removed or run beyond the study's folder."""

    @property
    def violation(self) -> str:
        """Return of which kind the violation is; empty for none."""
        if self.outside:
            return "opened, removed or ran something outside"
        if self.seconds > MOST_S or self.code == -1:
            return "took longer than 10 s of a processor"
        if "Traceback (most recent call last)" in self.said:
            return "traceback"
        if "this is a fault in tuner itself" in self.said:
            return "this is a fault in tuner itself"
        # Tables of another Optuna need that one installed, which is no fault of the file.
        if self.code not in MEANT and "another version of Optuna" not in self.said:
            return f"exit {self.code}"
        return "steered the terminal" if CONTROL & set(self.said) else ""


def make_base(folder: Path, *, is_whole: bool = True) -> None:
    """Write a study that has its winner, as a run leaves it: a simulated campaign, or its pairs alone."""
    folder.mkdir(parents=True)
    settings, host = write_study(folder), SimulatedHost()
    storage, space = open_on_disk(settings, host.clock), space_of(*TUNED)
    storage.claim(FINGERPRINT, definition=settings.definition(space))
    storage.remember(SPACE_FACTS, facts_to_json(FACTS, {}))
    storage.remember(PRESET, "quick")
    if is_whole:
        plan = replace(SMALL_PLAN, trials=6, race_s=5)
        storage.remember(VERDICT, run_campaign(make_campaign(settings, host, storage, plan=plan)))
    else:
        _measure_pairs(settings, space, storage, host)
    with contextlib.closing(sqlite3.connect(settings.folder / "study.db")) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _measure_pairs(settings: Study, space: Space, storage: Storage, host: SimulatedHost) -> None:
    winner = space.complete({"open_file_cache": 2000})
    storage.remember(CONFIRMATION, Confirmation(config=winner, pairs=4, windows=2, extend_to=4, looks=1))
    runner = SimulatedRunner(
        host=host, setup=make_setup(settings, space), plan=SMALL_PLAN, storage=storage, session="one"
    )
    sides = {DEFAULT_ARM: space.default(), WINNER_ARM: winner}
    pairing = Pairing(role=Role.CONFIRM, sides=sides, pairs=4, rng=Random(1))  # noqa: S311 - no secret
    trials: list[Trial] = []

    def make(opening: Opening) -> Trial:
        trials.append(runner.make(opening))
        return trials[-1]

    measure_pairs(pairing, trials, make)
    storage.remember(VERDICT, "confirmed")


def mutate(folder: Path, rng: Random) -> str:
    """Change a study in one to three ways; tell in which."""
    ways = rng.choices(
        list(WAYS), weights=[weight for _, weight in WAYS.values()], k=rng.choice([1, 1, 2, 3])
    )
    told = []
    for way in ways:
        try:
            told.append(f"{way}: {WAYS[way][0](folder, rng)}")
        except (sqlite3.Error, OSError, ValueError, IndexError) as error:  # spoiled before
            told.append(f"{way}: {type(error).__name__}")
    return "; ".join(told)


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(folder / "study.db", isolation_level=None)) as database:
        yield database


def _change_json(folder: Path, rng: Random) -> str:
    """Change one value within what is stored as JSON."""
    with _opened(folder) as database:
        table, own = rng.choice(
            [
                ("study_user_attributes", "study_user_attribute_id"),
                ("trial_user_attributes", "trial_user_attribute_id"),
            ]
        )
        rows = database.execute(f"SELECT {own}, key, value_json FROM {table}").fetchall()  # noqa: S608 - own words
        number, key, text = rng.choice(rows)
        value = json.loads(text)
        where, changed = _change_node(value, rng)
        dumped = json.dumps(changed)
        if rng.random() < 0.05:
            dumped = "[" * 3000 + dumped + "]" * 3000
        database.execute(f"UPDATE {table} SET value_json = ? WHERE {own} = ?", (dumped, number))  # noqa: S608 - own words
        return f"{key}{where}"


def _change_node(value: Any, rng: Random, where: str = "") -> tuple[str, Any]:
    if isinstance(value, dict | list) and value and rng.random() < 0.85:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = rng.choice(keys)
        what = rng.random()
        copy = value.copy()
        if what < 0.1:
            del copy[key]
            return f"{where}[{key!r}] removed", copy
        if what < 0.15 and isinstance(copy, dict):
            copy[str(rng.choice(VALUES))[:50]] = rng.choice(VALUES)
            return f"{where} got a key", copy
        there, copy[key] = _change_node(value[key], rng, f"{where}[{key!r}]"[:80])
        return there, copy
    new = rng.choice(VALUES)
    return f"{where} = {new!r:.40}", new


def _change_cell(folder: Path, rng: Random) -> str:
    with _opened(folder) as database:
        database.execute("PRAGMA foreign_keys = OFF")
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = rng.choice(tables)
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        column, new = rng.choice(columns), rng.choice(CELLS)
        rows = [row for (row,) in database.execute(f"SELECT rowid FROM {table}")]  # noqa: S608 - own words
        if not rows:
            return "nothing there"
        database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (new, rng.choice(rows)))  # noqa: S608 - own words
        return f"{table}.{column} = {new!r:.40}"


def _delete_rows(folder: Path, rng: Random) -> str:
    with _opened(folder) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = rng.choice([*tables, "trials", "trial_user_attributes", "study_user_attributes"])
        share = rng.choice([1, 2, 5])
        database.execute(f"DELETE FROM {table} WHERE abs(random()) % ? = 0", (share,))  # noqa: S608 - own words
        return f"1/{share} of {table}"


COMPUTED = "ALTER TABLE trials ADD COLUMN x AS (hex(zeroblob(100000000)))"


def _make_endless(table: str, columns: str) -> str:
    """Put a view without an end in the place of a table."""
    return f"DROP TABLE {table}; CREATE VIEW {table} AS {ENDLESS} SELECT {columns} FROM n"  # noqa: S608 - own words


SCHEMAS = (
    _make_endless("trials", "i AS trial_id, i AS number, 1 AS study_id"),
    _make_endless("study_user_attributes", "i AS study_user_attribute_id, 1 AS study_id, 'k' || i AS key"),
    _make_endless("alembic_version", "max(i) AS version_num"),
    _make_endless("studies", "i AS study_id, 's' || i AS study_name"),
    "CREATE TRIGGER x AFTER UPDATE ON trials BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE x USING fts5(y)",
    "DROP TABLE trial_values",
    "DROP TABLE trial_user_attributes",
    "DROP TABLE studies",
    "DROP TABLE alembic_version",
    COMPUTED,
    "ALTER TABLE studies ADD COLUMN x TEXT",
    "ALTER TABLE trials RENAME COLUMN state TO status",
    "UPDATE studies SET study_name = 'another'",
    "INSERT INTO studies (study_name) VALUES ('another')",
    "INSERT INTO study_directions (direction, study_id, objective) VALUES ('MINIMIZE', 1, 1)",
    "UPDATE study_directions SET direction = 'MINIMIZE'",
    "UPDATE alembic_version SET version_num = 'x'",
    "UPDATE trials SET number = 0",
    "UPDATE trials SET state = 'RUNNING'",
    "UPDATE trials SET state = 'PRUNED'",
    "UPDATE version_info SET schema_version = 99",
    "UPDATE trial_params SET distribution_json = '{\"name\": \"os.system\", \"attributes\": {}}'",
    "UPDATE trial_values SET value = 9e999",
)  # fmt: skip


def _change_schema(folder: Path, rng: Random) -> str:
    script = rng.choice(SCHEMAS)
    with _opened(folder) as database:
        database.execute("PRAGMA foreign_keys = OFF")
        database.execute("PRAGMA legacy_alter_table = ON")
        database.executescript(script)
    return script[:60]


def _change_bytes(folder: Path, rng: Random) -> str:
    path = folder / "study.db"
    content = bytearray(path.read_bytes())
    how = rng.choice(["flip", "flip", "block", "cut", "pages", "empty"])
    if how == "flip":
        for _ in range(rng.choice([1, 10, 200])):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    elif how == "block":
        place = rng.randrange(len(content))
        content[place : place + 4096] = rng.randbytes(len(content[place : place + 4096]))
    elif how == "cut":
        del content[rng.randrange(len(content)) :]
    elif how == "pages":
        first, second = (4096 * rng.randrange(1, len(content) // 4096) for _ in range(2))
        content[first : first + 4096] = content[second : second + 4096]
    else:
        content.clear()
    path.write_bytes(content)
    return how


def _change_folder(folder: Path, rng: Random) -> str:
    """Put something else where a file of the study's is, or may be."""
    place = folder / rng.choice(
        ["study.db", "study.db-wal", "study.db-journal", "study.db-shm", "lock", "report.html", "exports",
         "cache", "cache/page.html", "cache/explanation.json", "sweeps", "sweeps/a.db", "curves/a.db"]
    )  # fmt: skip
    place.parent.mkdir(exist_ok=True)
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    how = rng.choice(["link", "pipe", "folder", "garbage", "journal", "another", "dangling"])
    if how == "link":
        place.symlink_to(folder.parent / "canary")
    elif how == "dangling":
        place.symlink_to(folder.parent / "made")
    elif how == "pipe":
        os.mkfifo(place)
    elif how == "folder":
        place.mkdir()
    elif how == "garbage":
        place.write_bytes(rng.randbytes(5000))
    elif how == "journal":
        place.write_bytes(rng.randbytes(1024) + bytes.fromhex("d9d505f920a163d7"))
    elif (folder / "study.db").is_file():
        shutil.copy(folder / "study.db", place)
        if rng.random() < 0.7:
            with contextlib.closing(sqlite3.connect(place)) as database:
                database.executescript(rng.choice(SCHEMAS))
    return f"{place.relative_to(folder)} {how}"


WAYS: Mapping[str, tuple[Callable[[Path, Random], str], int]] = {
    "json": (_change_json, 8),
    "cell": (_change_cell, 3),
    "rows": (_delete_rows, 1),
    "schema": (_change_schema, 2),
    "bytes": (_change_bytes, 2),
    "folder": (_change_folder, 2),
}
"""How a study is changed, and how often."""


class Watch:
    """What Python opens for writing, removes and runs, as its audit hook tells; one for a process."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.outside: list[str] = []
        sys.addaudithook(self._look)

    def _look(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.folder is None:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, str | bytes) and int(flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                self._judge(event, path)
        elif event == "os.mkdir" and Path(os.fsdecode(arguments[0])).is_dir():
            return
        elif event in {"os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.symlink", "os.link", "os.chmod"}:
            self._judge(event, *(each for each in arguments if isinstance(each, str | bytes)))
        elif event == "sqlite3.connect":
            self._judge(event, str(arguments[0]).removeprefix("file://").partition("?")[0])
        elif event in {"subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.fork"}:
            self.outside.append(f"{event} {arguments}")

    def _judge(self, event: str, *paths: str | bytes) -> None:
        assert self.folder is not None
        for each in paths:
            path = os.fsdecode(each)
            # By a descriptor of a folder that was opened before, or nowhere.
            if not path.startswith("/") or path == os.devnull:
                continue
            real = Path(path).parent.resolve() / Path(path).name
            if not any(real.is_relative_to(own) for own in (self.folder, find_state_directory().resolve())):
                self.outside.append(f"{event} {path}")


def play(study: Path, changed: str, watch: Watch, commands: tuple[str, ...] = ()) -> list[Outcome]:
    """Let every command read a study."""
    outcomes = []
    folder = study.parent
    known = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    for words in (*COMMANDS, (SHELL,)):
        name = " ".join(words)
        if commands and name not in commands:
            continue
        action = _export if name == SHELL else _run
        outcomes.append(_play(study, changed, words, action, watch))
    beside = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    if beside != known:
        outcomes[-1] = replace(
            outcomes[-1], outside=(*outcomes[-1].outside, "a file beside the study changed")
        )
    return outcomes


def _play(
    study: Path,
    changed: str,
    words: tuple[str, ...],
    action: Callable[[Path, tuple[str, ...]], int],
    watch: Watch,
) -> Outcome:
    said = io.StringIO()
    watch.folder, watch.outside = study.with_suffix(".study").resolve(), []
    began_s = time.process_time()
    signal.signal(signal.SIGALRM, _give_up)
    signal.alarm(GIVEN_UP_S)
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = action(study, words)
    except TimeoutError:
        code = -1
    finally:
        signal.alarm(0)
        watch.folder = None
    return Outcome(
        study=str(study), changed=changed, command=" ".join(words), code=code,
        seconds=time.process_time() - began_s, said=said.getvalue(), outside=tuple(watch.outside),
    )  # fmt: skip


def _give_up(*_signal: object) -> NoReturn:
    raise TimeoutError


def _run(study: Path, words: tuple[str, ...]) -> int:
    argv, sys.argv = sys.argv, ["tuner", words[0], str(study), *words[1:]]
    try:
        return cli._call(cli.app)
    finally:
        sys.argv = argv


def _export(study: Path, _words: tuple[str, ...]) -> int:
    def export() -> None:
        settings = load_study(study)
        for path in write_export(read_installed(settings), "shell", settings.folder / "out"):
            sys.stdout.write(f"{path}\n")

    return cli._call(export)


def read_installed(settings: Study) -> Reading:
    """Read a study whose target has a plain nginx."""
    reading = read(settings)
    host = layouts.make_host(INSTALLED)
    host.commands["readlink"] = lambda _host, argv, _stdin: completed(
        argv, stdout="".join(f"{path}\n" for path in argv[3:]).encode()
    )
    setup = replace(
        make_setup(settings, reading.space),
        host=host,
        servers={"nginx": Nginx()},
        facts={"nginx": Facts()},
    )
    return replace(reading, setup=setup)


def play_many(count: int, seed: int, place: Path, most_s: float) -> list[Outcome]:
    """Play so many changed studies, or as many as the time allows."""
    base, watch, outcomes = place / f"base{seed}", Watch(), list[Outcome]()
    make_base(base)
    until_s = time.monotonic() + most_s
    for number in range(count):
        if time.monotonic() > until_s:
            break
        rng = Random(f"{seed}/{number}")  # noqa: S311 - no secret
        copy = place / f"{seed}-{number}"
        shutil.copytree(base, copy)
        (copy / "canary").write_bytes(b"a file of somebody else's\n")
        told = mutate(copy / f"{Path(STUDY).stem}.study", rng)
        found = play(copy / STUDY, told, watch, commands=("show", *rng.sample(SLOWER, 2)))
        outcomes += found
        if not any(each.violation for each in found):
            shutil.rmtree(copy)
    return outcomes
