"""A study that an earlier tuner has written resumes, wherever it was left."""

import json
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState, create_trial

from tests.unit.simulation import SMALL_PLAN, SimulatedHost, make_campaign, space_of, write_study
from tuner.campaign.campaign import run_campaign
from tuner.records import Role
from tuner.study.facts import CONFIRMATION, FINALIST
from tuner.study.open_storage import open_storage

FIRST_FORMAT = json.loads((Path(__file__).parents[1] / "study/first_format.json").read_text(encoding="utf-8"))
SPACE = space_of(*FIRST_FORMAT["trials"][0]["user_attrs"]["config"])
LATER = {"finalist": ("simplify", "confirm", "latency", "finished"), "race": ("race", "finalist", "searched")}
"""What is not there yet when a study is cut off before its finalist is ablated, and in its search."""


def write_earlier(settings, *, without=(), roles=()):
    """Write a study of an earlier tuner into the storage of a study, without some of its facts and trials."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    settings.folder.mkdir(exist_ok=True)
    study = optuna.create_study(storage=settings.storage_url, study_name=settings.name, direction="maximize")
    for key, value in FIRST_FORMAT["study"].items():
        if key not in without:
            study.set_user_attr(key, value)
    for trial in FIRST_FORMAT["trials"]:
        if trial["user_attrs"]["role"] not in roles:
            state = TrialState[trial["state"]]
            study.add_trial(create_trial(state=state, value=0.0, user_attrs=trial["user_attrs"]))
    return open_storage(settings.storage_url, settings.name, create=False)


def take_up(settings, **given):
    host = SimulatedHost()
    host.clock.sleep(86_400)
    storage = write_earlier(settings, **given)
    return make_campaign(settings, host, storage, plan=SMALL_PLAN, session="later", space=SPACE)


def test_a_study_whose_pairs_are_all_there_is_judged_by_them(tmp_path):
    campaign = take_up(write_study(tmp_path))
    before = campaign.storage.recall(CONFIRMATION)

    assert run_campaign(campaign) == "confirmed"
    assert campaign.storage.recall(CONFIRMATION) == before
    assert not [trial for trial in campaign.trials if trial.session == "later" and trial.role is Role.CONFIRM]


@pytest.mark.parametrize("at", LATER)
def test_a_study_that_was_cut_off_resumes_to_its_verdict(tmp_path, at):
    without = {*LATER["finalist"], *(LATER["race"] if at == "race" else ())}
    roles = {"confirm", "latency", "ablation", *(["race"] if at == "race" else [])}
    campaign = take_up(write_study(tmp_path), without=without, roles=roles)
    earlier = len(campaign.trials)

    assert run_campaign(campaign) == "confirmed"
    assert campaign.storage.recall(CONFIRMATION).config["open_file_cache"]
    assert campaign.storage.recall(FINALIST)
    assert [trial.session for trial in campaign.trials[:earlier]] == ["first"] * earlier
