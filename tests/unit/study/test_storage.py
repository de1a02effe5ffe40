import itertools
import sqlite3
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from urllib.parse import quote

import optuna
import pytest
from optuna.trial import TrialState
from sqlalchemy import event

from tests.unit.simulated_study import FINGERPRINT
from tests.unit.simulation import TUNED, SimulatedHost, space_of, write_study
from tuner.errors import TargetError, UsageError
from tuner.optimize.replay import distributions
from tuner.ports import Failures
from tuner.records import Failure, Role, State, Timing
from tuner.study import facts
from tuner.study.databases.database import translated
from tuner.study.objective import Constraint, slacks
from tuner.study.open_storage import open_storage
from tuner.study.storage import FAILED_VALUE, Opening

SPACE = space_of(*TUNED)
DEFAULT = SPACE.default()
DISTRIBUTIONS = distributions(SPACE.dimensions)
FEW_FAILURES = (Constraint(metric="failure_rate", limit=0.001),)
TIMING = Timing(suggest_s=0.01, deploy_s=0.3, load_s=4.0, store_s=0.002)
OPENING = Opening(role=Role.SEARCH, config=DEFAULT, point=SPACE.encode(DEFAULT))

DEFINITION = {"load": "wrk", "parameter a": "1 to 2", "parameter b": "on | off"}
CHANGED = {"load": "ab", "parameter a": "1 to 3", "parameter c": "on | off"}


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'study.db'}"


@pytest.fixture
def storage(url):
    return open_storage(url, "study")


def begin(storage, opening=OPENING):
    return storage.begin(opening, distributions=DISTRIBUTIONS if opening.point else {}, session="s")


def windows(count=2, **changes):
    host = SimulatedHost()
    return [replace(host.window(DEFAULT, 0.0, 1.0), **changes) for _ in range(count)]


def make(storage, *, state=State.COMPLETE, opening=OPENING, failure=None, log_ratio=0.1, count=2, **changes):
    """Make a trial with some windows, from its beginning to its end."""
    trial = begin(storage, opening)
    for window in windows(count, **changes):
        trial = storage.keep_window(trial, window)
    trial = replace(trial, state=state, failure=failure, timing=TIMING)
    storage.end(trial, log_ratio=log_ratio, slacks=slacks(trial, FEW_FAILURES, ()))
    return trial


def read_stored(url):
    return optuna.load_study(study_name="study", storage=url).trials


def test_every_trial_is_read_back_as_it_was_written(storage, url):
    made = [
        make(storage, opening=Opening(role=Role.BASELINE, config=DEFAULT, arm="default")),
        make(storage),
        make(storage, state=State.PRUNED, failure=Failure(kind="pruned", reason="clearly worse")),
        make(storage, state=State.FAILED, failure=Failure(kind="crashed", reason="sägfault"), count=0),
        make(storage, state=State.INVALID, failure=Failure(kind="environment", reason="noise")),
        make(storage, opening=Opening(role=Role.CONFIRM, config=DEFAULT, arm="winner", block=3)),
    ]

    assert storage.trials() == tuple(made)
    assert open_storage(url, "study", create=False).trials() == tuple(made)
    assert [trial.number for trial in made] == list(range(6))


def test_a_window_is_read_back_before_its_trial_has_ended(storage, url):
    trial = begin(storage)
    first, second = windows()
    kept = storage.keep_window(trial, first)

    reading = open_storage(url, "study", create=False)

    assert reading.trials() == (kept,)
    assert reading.trials()[0].state is State.RUNNING
    both = storage.keep_window(kept, second)
    assert reading.trials() == (both,)


def test_the_point_of_a_trial_is_kept_and_one_without_has_none(storage, url):
    point = SPACE.encode(SPACE.complete({"sendfile": False, "worker_connections": 5000}))
    make(storage, opening=Opening(role=Role.BASELINE, config=DEFAULT))
    make(storage, opening=Opening(role=Role.SEARCH, config=SPACE.decode(point), point=point))

    assert [stored.params for stored in read_stored(url)] == [{}, dict(point)]


def test_a_failed_trial_is_told_as_complete_and_infeasible(storage, url):
    make(storage, state=State.FAILED, failure=Failure(kind="stalled", reason="x"), log_ratio=None)

    (stored,) = read_stored(url)

    assert stored.state is TrialState.COMPLETE
    assert stored.value == FAILED_VALUE
    assert any(slack > 0 for slack in stored.constraints.values())


def test_an_invalid_trial_is_told_as_failed(storage, url):
    make(storage, state=State.INVALID, failure=Failure(kind="environment", reason="x"))

    assert read_stored(url)[0].state is TrialState.FAIL


def test_a_pruned_trial_is_told_as_complete_with_its_value(storage, url):
    make(storage, state=State.PRUNED, failure=Failure(kind="pruned", reason="x"), log_ratio=-0.3)

    (stored,) = read_stored(url)

    assert stored.state is TrialState.COMPLETE
    assert stored.value == -0.3
    assert all(slack <= 0 for slack in stored.constraints.values())


def test_a_trial_that_fails_too_many_requests_is_told_as_infeasible(storage, url):
    make(storage, failures=Failures(status=100))

    assert read_stored(url)[0].constraints["failure_rate <= 0.001"] > 0


def test_every_complete_trial_has_the_same_constraints(storage, url):
    make(storage, state=State.FAILED, failure=Failure(kind="crashed", reason="x"), log_ratio=None, count=0)
    make(storage, state=State.PRUNED, failure=Failure(kind="pruned", reason="x"))
    make(storage)
    settle_one(storage, kept=2)

    named = [set(stored.constraints) for stored in read_stored(url)]
    assert named == [{"started", "failure_rate <= 0.001"}] * 4


def settle_one(storage, *, kept):
    trial = begin(storage)
    for window in windows(kept):
        trial = storage.keep_window(trial, window)
    return storage.settle(trial, least_windows=2, constraints=FEW_FAILURES, baselines=())


@pytest.mark.parametrize(("kept", "state"), [(0, State.INVALID), (1, State.INVALID), (2, State.COMPLETE)])
def test_a_cut_off_trial_is_invalid_unless_all_its_windows_are_there(storage, kept, state):
    settled = settle_one(storage, kept=kept)

    assert settled.state is state
    assert storage.trials() == (settled,)
    assert len(settled.windows) == kept


def test_a_window_that_the_environment_spoiled_does_not_make_a_cut_off_trial_whole(storage):
    spoiled = SimulatedHost(is_spoiled=lambda _: True).window(DEFAULT, 0.0, 1.0)
    trial = begin(storage)
    for window in (*windows(1), spoiled):
        trial = storage.keep_window(trial, window)

    settled = storage.settle(trial, least_windows=2, constraints=FEW_FAILURES, baselines=())

    assert settled.state is State.INVALID


def test_a_trial_that_was_cut_off_while_it_ended_is_still_running(storage, url):
    """Its end is two writes, and between them nobody has told Optuna yet."""
    trial = begin(storage)
    for window in windows():
        trial = storage.keep_window(trial, window)
    end_without_state(storage, replace(trial, state=State.COMPLETE))

    assert storage.trials()[0].state is State.RUNNING
    storage.settle(storage.trials()[0], least_windows=2, constraints=FEW_FAILURES, baselines=())
    assert read_stored(url)[0].state is TrialState.COMPLETE


def end_without_state(storage, trial):
    class Cut(Exception):
        pass

    def cut(*_):
        raise Cut

    before = storage._storage.set_trial_state_values
    storage._storage.set_trial_state_values = cut
    with pytest.raises(Cut):
        storage.end(trial, log_ratio=0.0, slacks=slacks(trial, FEW_FAILURES, ()))
    storage._storage.set_trial_state_values = before


def test_a_trial_that_was_cut_off_is_settled_by_the_windows_that_it_has(url):
    one, other = open_storage(url, "study"), open_storage(url, "study")
    trial = begin(one)
    for window in windows(2):
        trial = one.keep_window(trial, window)
    (seen,) = other.trials()

    settled = other.settle(seen, least_windows=2, constraints=(), baselines=())

    assert settled.state is State.COMPLETE
    assert len(settled.windows) == 2
    assert other.trials() == (settled,)


def test_what_is_made_is_known_without_being_read_again(url):
    storage = open_storage(url, "study")
    first, second = begin(storage), begin(storage)
    assert storage.known.running == [first, second]

    storage.end(replace(second, state=State.INVALID), log_ratio=None, slacks={})
    storage.end(replace(first, state=State.INVALID), log_ratio=None, slacks={})

    assert storage.known.running == []
    assert [trial.number for trial in storage.known.ended] == [first.number, second.number]


def test_another_host_is_admitted_where_it_is_alike(storage):
    storage.claim(FINGERPRINT, definition=DEFINITION)
    other = replace(FINGERPRINT, host="web2")

    storage.admit("ssh://web2", other, DEFINITION, free={"host"})

    assert storage.recall(facts.OTHER_HOSTS) == {"ssh://web2": other}
    with pytest.raises(UsageError, match="kernel was"):
        storage.admit("ssh://web3", replace(other, kernel="7.0"), DEFINITION, free={"host"})


def test_a_study_that_was_claimed_is_taken_up_by_the_same_machine_and_definition(storage, url):
    storage.claim(FINGERPRINT, definition=DEFINITION)

    open_storage(url, "study").claim(FINGERPRINT, definition=DEFINITION)

    assert storage.recall(facts.FINGERPRINT) == FINGERPRINT


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"host": "web2"}, "host was 'web1', is 'web2'"),
        ({"kernel": "7.0"}, "kernel was '6.18.44', is '7.0'"),
        ({"servers": {"nginx": "1.30.0"}}, "servers was"),
        ({"generator_cpus": (0, 1)}, "generator_cpus was [1], is [0, 1]"),
        ({"cores": 4, "memory_mib": 1}, "memory_mib was 7900, is 1"),
    ],
)
def test_a_study_of_another_machine_is_refused_with_what_differs(storage, url, changes, said):
    storage.claim(FINGERPRINT, definition=DEFINITION)
    make(storage)

    with pytest.raises(UsageError) as refused:
        open_storage(url, "study").claim(replace(FINGERPRINT, **changes), definition=DEFINITION)

    assert said in str(refused.value).replace("(1,)", "[1]").replace("(0, 1)", "[0, 1]")
    assert "Copy the study file to a new name" in str(refused.value)


def test_a_study_of_another_definition_is_refused_with_what_changed(storage):
    storage.claim(FINGERPRINT, definition=DEFINITION)
    make(storage)

    with pytest.raises(UsageError, match="has changed since this study began") as refused:
        storage.claim(FINGERPRINT, definition=CHANGED)
    for change in (
        "load was 'wrk', is 'ab'",
        "parameter a was '1 to 2', is '1 to 3'",
        "parameter c is new",
        "parameter b is gone",
    ):
        assert change in str(refused.value)


def test_a_study_in_which_nothing_was_measured_may_be_put_right(storage, url):
    storage.claim(FINGERPRINT, definition=DEFINITION)
    storage.remember(facts.PRESET, "standard")
    make(
        storage, state=State.FAILED, failure=Failure(kind="not_ready", reason="404"), log_ratio=None, count=0
    )
    begin(storage)

    storage.claim(replace(FINGERPRINT, host="web2"), definition=CHANGED)

    assert storage.recall(facts.FINGERPRINT).host == "web2"
    assert storage.recall(facts.DEFINITION) == CHANGED
    assert storage.recall(facts.PRESET) is None
    assert storage.trials() == ()
    make(storage)
    assert [trial.number for trial in open_storage(url, "study").trials()] == [0]


def test_bounds_may_be_changed_while_only_the_default_was_measured(storage, url):
    bounded = {**DEFINITION, "constraints": "failure_rate <= 0.001"}
    relative = {**DEFINITION, "constraints": "failure_rate <= default"}
    storage.claim(FINGERPRINT, definition=bounded)
    make(storage, opening=Opening(role=Role.BASELINE, config=DEFAULT, arm="default"))

    open_storage(url, "study").claim(FINGERPRINT, definition=relative)

    assert storage.recall(facts.DEFINITION) == relative
    assert len(storage.trials()) == 1
    with pytest.raises(UsageError, match="load was 'wrk', is 'ab'"):
        storage.claim(FINGERPRINT, definition={**CHANGED, "constraints": ""})
    make(storage)
    with pytest.raises(UsageError, match="constraints was 'failure_rate <= default'"):
        storage.claim(FINGERPRINT, definition=bounded)


def test_of_many_changes_the_first_few_are_named(storage):
    storage.claim(FINGERPRINT, definition=DEFINITION)
    make(storage)
    many = {f"parameter {number}": "1 to 2" for number in range(50)}

    with pytest.raises(UsageError, match=r"parameter 0 is new.*, and 49 more\)"):
        storage.claim(FINGERPRINT, definition=many)


def test_a_claim_that_was_cut_off_half_way_can_be_made_again(storage):
    class Cut(Exception):
        pass

    def cut(_name, _value):
        raise Cut

    for allowed in range(2):
        written = itertools.count()
        set_user_attr = storage._study.set_user_attr
        storage._study.set_user_attr = lambda key, value, n=written, m=allowed, s=set_user_attr: (
            s(key, value) if next(n) < m else cut(key, value)
        )
        with pytest.raises(Cut):
            storage.claim(FINGERPRINT, definition=DEFINITION)
        storage._study.set_user_attr = set_user_attr

    storage.claim(FINGERPRINT, definition=DEFINITION)
    storage.claim(FINGERPRINT, definition=DEFINITION)


def test_what_is_remembered_is_recalled_by_whoever_opens_it(storage, url):
    storage.remember(facts.FINALIST, (dict(DEFAULT),))

    assert open_storage(url, "study").recall(facts.FINALIST) == (dict(DEFAULT),)
    assert storage.recall(facts.VERDICT) is None


def test_a_study_that_is_not_there_is_refused_unless_it_may_be_made(url, tmp_path):
    with pytest.raises(UsageError, match=r"this storage has no study yet. Start the study with `tuner run`"):
        open_storage(url, "study", create=False)
    assert list(tmp_path.iterdir()) == []


MAKE = """
import sys
from tuner.study.open_storage import open_storage

open_storage(sys.argv[1], "study")
"""


def test_whoever_looks_while_a_study_is_made_does_not_break_it(url):
    with subprocess.Popen([sys.executable, "-c", MAKE, url]) as maker:
        while maker.poll() is None:
            with suppress(UsageError):
                open_storage(url, "study", create=False)

    assert maker.returncode == 0
    assert open_storage(url, "study", create=False).trials() == ()


def test_a_file_whose_maker_was_cut_off_is_made_anew(url, tmp_path):
    (tmp_path / "study.db.new").write_bytes(b"half of a file")

    open_storage(url, "study")

    assert [path.name for path in tmp_path.iterdir() if ".new" in path.name] == []


def test_a_file_that_holds_another_study_is_refused(storage, url):
    assert storage.trials() == ()

    with pytest.raises(UsageError, match="holds the study 'study', not 'other'"):
        open_storage(url, "other")


def test_a_file_that_is_no_database_is_refused(url, tmp_path):
    (tmp_path / "study.db").write_bytes(b"no database " * 500)

    with pytest.raises(UsageError, match=r"study.db: .*not a database.* Move the file away"):
        open_storage(url, "study")


@pytest.mark.parametrize("share", [0.001, 0.05, 0.3, 0.6])
def test_a_database_that_was_cut_off_is_refused(tmp_path, share):
    whole = make_file(tmp_path / "whole.db")
    (tmp_path / "cut.db").write_bytes(whole[: int(len(whole) * share)])

    with pytest.raises(UsageError, match="malformed"):
        open_storage(f"sqlite:///{tmp_path / 'cut.db'}", "study").trials()


def test_a_database_with_garbage_inside_is_refused(tmp_path):
    whole = make_file(tmp_path / "whole.db")
    half = len(whole) // 3
    (tmp_path / "spoiled.db").write_bytes(whole[:half] + b"\xff" * (len(whole) - half))

    with pytest.raises(UsageError, match="malformed"):
        open_storage(f"sqlite:///{tmp_path / 'spoiled.db'}", "study").trials()


def make_file(path):
    storage = open_storage(f"sqlite:///{path}", "study")
    make(storage)
    storage._storage.engine.dispose()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.read_bytes()


def test_a_record_that_is_no_json_is_refused(storage, tmp_path):
    storage.remember(facts.FINALIST, ())
    with sqlite3.connect(tmp_path / "study.db") as connection:
        connection.execute("UPDATE study_user_attributes SET value_json = '{\"cut'")

    with pytest.raises(UsageError, match="Move the file away"):
        storage.recall(facts.FINALIST)


def test_a_storage_of_another_version_of_optuna_is_refused(storage, url, tmp_path):
    assert storage.trials() == ()
    with sqlite3.connect(tmp_path / "study.db") as connection:
        connection.execute("UPDATE version_info SET schema_version = 99")
        connection.execute("UPDATE alembic_version SET version_num = 'v99'")

    with pytest.raises(TargetError, match=r"another version of Optuna.*Upgrade Optuna: pip install"):
        open_storage(url, "study")


def test_tables_of_an_earlier_optuna_in_a_file_are_refused_with_the_way_out(storage, url, tmp_path):
    assert storage.trials() == ()
    with sqlite3.connect(tmp_path / "study.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'v3.0.0.d'")

    with pytest.raises(TargetError, match=r"Keep a copy of the file.*optuna storage upgrade"):
        open_storage(url, "study")


def test_a_full_disk_is_said_with_the_file_and_the_same_command_resumes(storage, tmp_path):
    trial = begin(storage)

    @event.listens_for(storage._storage.engine, "connect")
    def allow_no_more(connection, _record):
        connection.execute("PRAGMA max_page_count = 1")

    storage._storage.engine.dispose()

    with pytest.raises(TargetError, match=r"study.db: .*full.* Free some space on that disk"):
        keep_many(storage, trial)
    assert open_storage(f"sqlite:///{tmp_path / 'study.db'}", "study").trials()[0].number == trial.number


def keep_many(storage, trial):
    for window in windows(200):
        trial = storage.keep_window(trial, window)


def test_an_operating_system_error_without_a_word_is_named_by_its_class():
    said = r"here: the storage cannot be used \(OSError\)"

    with pytest.raises(TargetError, match=said), translated("here"):
        raise OSError


@pytest.mark.parametrize("url", ["postgresql://user:secret@web1/tuner", "postgresql:/user:secret", "other"])
def test_a_storage_that_is_no_file_is_refused_without_its_password(tmp_path, url):
    with pytest.raises(UsageError, match="tuner stores a study only in a file") as refused:
        write_study(tmp_path, more=f"storage: {url}\n")

    assert ":8: " in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("name", ["a b", "a?b", "a#b", "a%20b", "a{b}", "ä:b", "a&b=c"])
def test_a_study_may_lie_in_a_folder_of_any_name(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    settings = write_study(folder)
    settings.folder.mkdir()

    made = make(open_storage(settings.storage_url, settings.name))

    assert (settings.folder / "study.db").exists()
    assert open_storage(settings.storage_url, settings.name, create=False).trials() == (made,)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_missing_study_in_a_folder_with_odd_letters_is_named_as_it_is(tmp_path):
    url = f"sqlite:///{quote(str(tmp_path / 'a b' / 'study.db'))}"

    with pytest.raises(UsageError, match=r"/a b/study.db: this storage has no study"):
        open_storage(url, "study", create=False)
