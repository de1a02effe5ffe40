"""The one extension of a winner of which it is open whether it keeps its constraints."""

import pytest

from tests.unit.simulation import SimulatedHost, make_campaign, open_in_memory, write_study
from tuner.campaign.campaign import calibrate
from tuner.campaign.stages.confirm import confirm
from tuner.records import Role
from tuner.study.facts import CONFIRMATION


@pytest.mark.parametrize(
    ("rate", "is_extended"),
    [
        (0.003, False),  # as the default
        (0.0039, True),  # somewhat more
        (0.03, False),  # ten times as often: it is out
    ],
)
def test_a_doubted_winner_is_measured_once_more_as_often_as_in_the_pairs(tmp_path, rate, is_extended):
    settings = write_study(tmp_path, more="constraints: [failure_rate <= default]\n")
    host = SimulatedHost(failure_rate=lambda config: rate if config["open_file_cache"] else 0.003)
    campaign = make_campaign(settings, host, open_in_memory(host.clock))
    calibrate(campaign)
    before = len(campaign.trials)

    confirm(campaign, campaign.setup.space.complete({"open_file_cache": 2000}))

    planned = campaign.storage.recall(CONFIRMATION)
    made = [trial.role for trial in campaign.trials[before:]]
    assert made[: 2 * planned.pairs] == [Role.CONFIRM] * 2 * planned.pairs
    assert made[2 * planned.pairs :] == [Role.REPEAT, Role.BASELINE] * planned.pairs * is_extended
