import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tests.unit.simulated_study import make_summary
from tests.unit.simulation import (
    SMALL_PLAN,
    SimulatedHost,
    make_campaign,
    open_in_memory,
    open_on_disk,
    write_study,
)
from tuner.campaign.campaign import run_campaign
from tuner.errors import UsageError
from tuner.explain.costs import observe_costs
from tuner.export.provenance import describe_origin
from tuner.records import Role
from tuner.report.summary import pick, summarize
from tuner.report.summary_json import summary_json
from tuner.report.terminal import final_screen
from tuner.statistics.baseline_level import Speedup
from tuner.statistics.pareto import FrontChoice, costs, find_front, undominated
from tuner.statistics.ranking import config_key
from tuner.study.facts import VERDICT
from tuner.study.objective import SERVER_CPU

OBJECTIVE = "objective: [maximize goodput_rps, minimize cpu_us_per_request]\n"
numbers = st.floats(-1, 1).map(lambda value: round(value, 2))


def choice(goodput, cost):
    return FrontChoice(
        config={"a": goodput, "b": cost},
        goodput=Speedup(log_ratio=goodput, variance=0.01),
        cost=Speedup(log_ratio=cost, variance=0.01),
        trials=1,
    )


def beats(one, other):
    return (
        one.goodput.log_ratio >= other.goodput.log_ratio
        and one.cost.log_ratio <= other.cost.log_ratio
        and one != other
    )


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=30, unique=True))
def test_the_front_is_what_nobody_beats_in_both(pairs):
    choices = [choice(*pair) for pair in pairs]

    front = undominated(choices)

    assert not any(beats(one, other) for one in front for other in front)
    assert all(each in front or any(beats(one, each) for one in front) for each in choices)
    assert [each.goodput.log_ratio for each in front] == sorted(
        (each.goodput.log_ratio for each in front), reverse=True
    )


def cpu_us(config):
    """The cache costs CPU, what is slower saves some."""
    return 40.0 * (1.3 if config["open_file_cache"] else 1.0) * (1.0 if config["sendfile"] else 0.7)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    settings = write_study(tmp_path_factory.mktemp("study"), seed=3, more=OBJECTIVE)
    host = SimulatedHost(cpu_us=cpu_us)
    storage = open_on_disk(settings, host.clock)
    campaign = make_campaign(settings, host, storage, plan=replace(SMALL_PLAN, trials=16))
    storage.claim(campaign.setup.fingerprint, definition=settings.definition(campaign.setup.space))
    storage.remember(VERDICT, run_campaign(campaign))
    return campaign, summarize(settings, campaign.setup.space, storage, running=False, version="0.1.0")


def test_a_cost_is_relative_to_the_default(study):
    campaign, _ = study
    by_trial = costs(campaign.trials, "cpu_us_per_request")

    cached = [trial for trial in campaign.trials if trial.config["open_file_cache"] and trial.counts]
    plain = [trial for trial in cached if trial.config["sendfile"]]
    assert plain
    assert all(by_trial[trial.number].ratio == pytest.approx(1.3, rel=0.1) for trial in plain)
    baselines = [trial for trial in campaign.trials if trial.role is Role.BASELINE]
    assert all(by_trial[trial.number].ratio == pytest.approx(1.0, rel=0.1) for trial in baselines)


def test_each_host_is_held_against_its_own_default(study):
    campaign, _ = study
    metric, space = "cpu_us_per_request", campaign.setup.space
    here = [replace(trial, host="a") for trial in campaign.trials]
    dear = [
        replace(
            trial,
            number=1000 + trial.number,
            host="b",
            windows=tuple(
                replace(each, counters={**each.counters, SERVER_CPU: 3 * each.counters[SERVER_CPU]})
                for each in trial.windows
            ),
        )
        for trial in campaign.trials
    ]
    by_trial = costs([*here, *dear], metric)
    alone = costs(campaign.trials, metric)

    assert len(by_trial) == 2 * len(alone)
    for number, cost in alone.items():
        assert by_trial[number].log_ratio == pytest.approx(cost.log_ratio)
        assert by_trial[1000 + number].log_ratio == pytest.approx(cost.log_ratio)
    seen = observe_costs(space, [*here, *dear], metric)
    assert set(seen.moments.hosts) == {"a", "b"}
    assert seen.values[: len(seen.values) // 2] == pytest.approx(seen.values[len(seen.values) // 2 :])


def test_nothing_is_said_of_costs_without_baselines(study):
    campaign, _ = study
    searched = [trial for trial in campaign.trials if trial.role is Role.SEARCH]

    assert costs(searched, "cpu_us_per_request") == {}


def test_the_front_holds_the_fast_and_the_frugal(study):
    _, summary = study

    fast, frugal = summary.front[0], summary.front[-1]
    assert fast.goodput.ratio > 1.1
    assert fast.cost.ratio > 1.2
    assert frugal.cost.ratio < 0.8
    assert not frugal.config["sendfile"]


def test_the_optimizer_is_told_both(study):
    from tuner.campaign.suggest import observe

    campaign, _ = study
    seen = observe(campaign)

    assert all(each.cost is not None for each in seen if each.log_ratio is not None)


@pytest.mark.parametrize("optimizer", ["noisy-gp", "tpe", "random", "qmc"])
def test_every_optimizer_weighs_two_objectives(study, optimizer):
    from tuner.campaign.suggest import observe
    from tuner.optimize.catalogue import make_optimizer

    campaign, _ = study
    space = campaign.setup.space
    seen = observe(campaign)

    suggestion = make_optimizer(optimizer, space.encode(space.default())).suggest(
        space.dimensions, seen, seed=1
    )

    assert not space.violations(space.decode(suggestion.point))
    assert suggestion.expected_gain is None


def test_it_is_shown_and_printed(study):
    _, summary = study

    shown = summary_json(summary)
    assert [each["pick"] for each in shown["front"]] == list(range(1, len(summary.front) + 1))
    assert {"goodput_ratio", "cpu_us_per_request_ratio", "changes", "trials"} <= shown["front"][0].keys()

    console = Console(width=200, file=io.StringIO())
    console.print(final_screen(summary))
    text = console.file.getvalue()
    assert "cpu_us_per_request" in text
    assert "open_file_cache" in text


def test_any_choice_can_be_picked(study):
    _, summary = study

    picked = pick(summary, len(summary.front))

    assert picked.winner is not None
    assert dict(picked.winner.config) == dict(summary.front[-1].config)
    assert "sendfile" in picked.changes
    assert any("not confirmed; choice" in line for line in describe_origin(picked))


def test_the_winner_is_a_choice_even_where_another_seems_to_beat_it(study):
    campaign, _ = study
    ranking = campaign.ranking()
    everything = {config_key(entry.config): entry.config for entry in ranking.entries}
    fronts = {
        key: find_front(campaign.trials, ranking, campaign.default, "cpu_us_per_request", winner=config)
        for key, config in everything.items()
    }

    assert all(key in {config_key(each.config) for each in front} for key, front in fronts.items())
    assert len({len(front) for front in fronts.values()}) == 2
    for front in fronts.values():
        goodputs = [each.goodput.log_ratio for each in front]
        assert goodputs == sorted(goodputs, reverse=True)


def test_picking_the_winner_keeps_its_gain(study):
    _, summary = study
    won = config_key(summary.winner.config)
    numbers = [number for number, each in enumerate(summary.front, 1) if config_key(each.config) == won]

    assert len(numbers) == 1
    assert pick(summary, numbers[0]).gain == summary.gain
    assert [each["is_winner"] for each in summary_json(summary)["front"]].index(True) == numbers[0] - 1


@pytest.mark.parametrize("number", [0, 99, -1])
def test_a_choice_that_is_not_there_is_refused(study, number):
    with pytest.raises(UsageError, match=r"--pick: there is no choice .* Give 1 to"):
        pick(study[1], number)


def test_a_study_with_one_objective_has_nothing_to_pick():
    with pytest.raises(UsageError, match="--pick: nginx-static has one objective"):
        pick(make_summary(), 1)


def test_a_cost_that_nobody_reports_is_refused(tmp_path):
    settings = write_study(tmp_path, more="objective: [maximize goodput_rps, minimize latency_p99_ms]\n")
    host = SimulatedHost(reports_latency=False)
    campaign = make_campaign(settings, host, open_in_memory(host.clock))

    with pytest.raises(UsageError, match="tuner cannot judge objective minimize latency_p99_ms"):
        run_campaign(campaign)
