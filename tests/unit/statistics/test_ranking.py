from dataclasses import replace

import numpy as np
import pytest

from tests.unit.trials import DEFAULT, SPACE, baseline, config_of, failed, trial, window
from tuner.records import Role, State
from tuner.statistics.ranking import DEFAULT_ARM, LIKELY, as_baselines, config_key, follow_incumbent, rank
from tuner.study.objective import Constraint

FEW_FAILURES = (Constraint(metric="failure_rate", limit=0.001),)
CACHED = config_of(open_file_cache=1000)
EAGER = config_of(multi_accept=True)
COPIED = config_of(sendfile=False)
BASELINES = [baseline(0, 1000, 1010), baseline(1, 1005, 995), baseline(9, 1000, 1000)]


def ranked(*trials):
    """Return the configurations that may lead, best first."""
    entries = rank(SPACE, [*BASELINES, *trials], FEW_FAILURES).entries
    return [entry.config for entry in entries if entry.p_feasible >= LIKELY]


def test_equal_configurations_have_one_key_whatever_their_order():
    assert config_key({"a": 1, "b": True}) == config_key({"b": True, "a": 1})
    assert config_key({"a": 1}) != config_key({"a": True})


def test_the_best_comes_first():
    assert ranked(
        trial(2, 1100, 1110, config=EAGER),
        trial(3, 1300, 1290, config=CACHED),
        trial(4, 900, 900, config=COPIED),
    ) == [CACHED, EAGER, COPIED]


def test_speedups_are_relative_to_the_default_at_that_time():
    ranking = rank(SPACE, [*BASELINES, trial(2, 1200, 1200, config=CACHED)], ())

    assert ranking.speedups[2].ratio == pytest.approx(1.2, rel=0.02)
    assert ranking.incumbent.posterior.ratio == pytest.approx(1.2, rel=0.04)


STUDIES = 20


def drawn_study(seed, *, sigma=0.15):
    """Draw a study whose trials scatter by 15 %: one that is 28 % better three times, six at 11 % once."""
    rng = np.random.default_rng(seed)
    middling = [
        config_of(worker_connections=1000 + 700 * index, sendfile=bool(index % 2)) for index in range(6)
    ]
    configs = [DEFAULT] * 12 + [CACHED] * 3 + middling
    logs = np.repeat([0.0, 0.25, 0.1], [12, 3, 6]) + sigma * rng.standard_normal(len(configs))
    rates = 1000 * np.exp(logs[:, None] + 0.02 * rng.standard_normal((len(configs), 2)))
    return [
        (baseline if config is DEFAULT else trial)(
            number, *pair, **({} if config is DEFAULT else {"config": config})
        )
        for number, (config, pair) in enumerate(zip(configs, rates, strict=True))
    ]


def best_by_mean(trials):
    """Return the configuration with the best mean, however few trials it has: the luckiest."""
    groups = {}
    for each in trials:
        if each.role is not Role.BASELINE:
            groups.setdefault(config_key(each.config), []).append(each.log_goodput)
    return max(groups, key=lambda key: np.mean(groups[key]))


def test_a_lucky_trial_does_not_outrank_a_configuration_that_was_good_three_times():
    studies = [drawn_study(seed) for seed in range(STUDIES)]

    misled = sum(best_by_mean(trials) != config_key(CACHED) for trials in studies)
    leads = [rank(SPACE, trials, ()).incumbent.key == config_key(CACHED) for trials in studies]

    assert misled >= 0.4 * STUDIES
    assert sum(leads) >= 0.75 * STUDIES


def test_the_incumbent_is_followed_among_what_is_feasible():
    lucky = trial(3, 1500, 1500, config=EAGER)
    trials = [*BASELINES, trial(2, 1100, 1100, config=CACHED), lucky, trial(4, 1200, 1200, config=COPIED)]
    trials += [trial(5, 1160, 1160, config=CACHED), failed(6, config=EAGER), failed(7, config=EAGER)]

    path = follow_incumbent(trials, rank(SPACE, trials, FEW_FAILURES))

    assert [number for number, _ in path] == [2, 4, 5]
    assert [ratio for _, ratio in path] == pytest.approx([1.1, 1.2, 1.2], rel=0.03)


def test_repeats_of_a_configuration_are_one_entry():
    ranking = rank(
        SPACE,
        [
            *BASELINES,
            trial(2, 1200, config=CACHED),
            trial(3, 1300, config=CACHED, role=Role.REPEAT),
            trial(4, 1250, config=CACHED, role=Role.RACE, arm="#1", block=0),
        ],
        FEW_FAILURES,
    )

    (entry,) = ranking.entries
    assert entry.trials == 3
    assert entry.posterior.ratio == pytest.approx(1.25, rel=0.04)


def test_the_default_is_never_ranked_not_even_as_a_candidate():
    assert ranked(trial(2, 2000, 2000, config=DEFAULT), trial(3, 1100, 1100, config=EAGER)) == [EAGER]


def test_one_failed_trial_bans_nobody_and_more_of_them_do():
    good = trial(2, 1300, 1300, config=CACHED)

    assert ranked(good, failed(3, config=CACHED)) == [CACHED]
    assert ranked(good, failed(3, config=CACHED), failed(4, config=CACHED), failed(5, config=CACHED)) == []


def test_an_invalid_trial_says_nothing_about_its_configuration():
    lost = trial(3, config=CACHED, state=State.INVALID)

    assert ranked(trial(2, 1300, 1300, config=CACHED), lost) == [CACHED]
    assert ranked(lost) == []


def test_a_running_trial_says_nothing_yet():
    running = trial(3, config=CACHED, state=State.RUNNING)

    assert ranked(trial(2, 1300, 1300, config=CACHED), running) == [CACHED]


def test_a_server_that_answers_503_quickly_is_never_the_incumbent():
    """Nine of ten responses are errors, and those that are none come three times as fast as the default's."""
    quick = trial(2, config=EAGER, windows=(window(3000, failed=27_000),) * 2)

    assert ranked(quick) == []
    assert ranked(quick, trial(3, 1001, 1001, config=CACHED)) == [CACHED]


def test_a_server_that_answers_only_errors_is_never_the_incumbent():
    only_errors = trial(2, config=EAGER, windows=(window(0, failed=30_000),) * 2)

    assert ranked(only_errors) == []
    assert rank(SPACE, [*BASELINES, only_errors], ()).incumbent.posterior.log_ratio < 0


def test_pruned_trials_count():
    pruned = trial(2, 700, config=COPIED, state=State.PRUNED)

    assert ranked(pruned) == [COPIED]


def test_trials_at_a_fixed_rate_say_nothing_about_goodput():
    slow = [
        trial(2, 300, config=CACHED, role=Role.LATENCY, arm="winner", block=0),
        trial(3, 300, config=DEFAULT, role=Role.LATENCY, arm=DEFAULT_ARM, block=0),
    ]

    ranking = rank(SPACE, [*BASELINES, trial(4, 1300, 1300, config=CACHED), *slow], FEW_FAILURES)

    assert ranking.incumbent.posterior.ratio == pytest.approx(1.3, rel=0.04)
    assert not {2, 3} & ranking.speedups.keys()


def test_the_defaults_trials_in_races_and_confirmations_are_baselines():
    race = trial(2, 1000, config=DEFAULT, role=Role.RACE, arm=DEFAULT_ARM, block=0)
    other = replace(race, number=3, arm="#1", config=CACHED)

    assert [each.role for each in as_baselines([race, other])] == [Role.BASELINE, Role.RACE]


def test_a_new_baseline_revises_the_past():
    candidate = trial(4, 1200, 1200, config=CACHED)
    before = rank(SPACE, [baseline(0, 1000, 1000), candidate], ()).speedups[4]

    after = rank(SPACE, [baseline(0, 1000, 1000), candidate, baseline(5, 1020, 1020)], ()).speedups[4]

    assert after.log_ratio < before.log_ratio
    assert after.variance < before.variance


def test_before_the_first_baseline_nothing_is_known():
    ranking = rank(SPACE, [trial(0, 1000, config=CACHED)], ())

    assert ranking.speedups == {}
    assert ranking.entries == ()
    assert ranking.incumbent is None


def test_a_study_without_trials_has_no_ranking():
    assert rank(SPACE, [], ()).incumbent is None
