"""A real study that an earlier tuner began resumes with the settings that were searched then."""

import json
import signal
from pathlib import Path

import optuna
import pytest

from tests.e2e.command_line import CommandLine
from tests.e2e.traces import eventually
from tests.testbed.processors import idle_processors_here
from tuner.campaign.prepare import prepare
from tuner.cli.exit_codes import INTERRUPTED
from tuner.records import Role
from tuner.study import Study, load_study
from tuner.study.facts import SPACE_FACTS
from tuner.study.open_storage import open_storage

pytestmark = pytest.mark.more

INERT = "listen_backlog"
"""Twenty connections fit into any queue, so that it cannot act; earlier tuners searched it."""


def begin(settings: Study, *, knows_load: bool) -> None:
    """Make the storage with what the space was loaded with; an earlier tuner kept nothing of the load."""
    setup = prepare(settings)
    assert INERT in setup.space.inert
    kept = json.loads(json.dumps(setup.space_facts))
    if not knows_load:
        del kept["load"]
    settings.folder.mkdir()
    open_storage(settings.storage_url, settings.name).remember(SPACE_FACTS, kept)


def searched_by_session(settings: Study) -> dict[str, list[bool]]:
    """Return, by session, of every trial of the search whether the setting was among what was searched."""
    trials = open_storage(settings.storage_url, settings.name, create=False).trials()
    stored = optuna.load_study(study_name=settings.name, storage=settings.storage_url).trials
    found: dict[str, list[bool]] = {}
    for trial in trials:
        if trial.role is Role.SEARCH:
            names = stored[trial.number].distributions
            found.setdefault(trial.session, []).append(INERT in names)
    return found


def run_until_searched(tuner: CommandLine, settings: Study, *, sessions: int) -> None:
    """Run the study, and stop it when so many sessions have begun a trial of the search."""
    process = tuner.start("run", settings.path)
    eventually(
        lambda: process.poll() is not None or len(searched_by_session(settings)) == sessions, within_s=100
    )
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED, said


@pytest.mark.parametrize("knows_load", [False, True])
def test_an_interrupted_study_searches_in_all_its_sessions_what_it_began_with(
    tmp_path: Path, *, knows_load: bool
):
    with idle_processors_here() as through:
        tuner = CommandLine(tmp_path, through=through)
        settings = load_study(tuner.write())
        begin(settings, knows_load=knows_load)
        for number in (1, 2):
            run_until_searched(tuner, settings, sessions=number)
        shown = json.loads(tuner.run("show", settings.path, "--json").stdout)

    sessions = searched_by_session(settings)
    assert {is_searched for trials in sessions.values() for is_searched in trials} == {not knows_load}
    assert (INERT in shown["not_searched"].get("cannot_act", {})) is knows_load
