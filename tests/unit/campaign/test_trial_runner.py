from dataclasses import replace

import optuna
import pytest
from sqlalchemy import event

from tests.unit.bench import CONFIG, Bench, Happening, scripted
from tests.unit.simulation import SMALL_PLAN, TUNED, make_setup, open_on_disk, space_of, write_study
from tuner.campaign.trial_runner import TrialRunner
from tuner.errors import TargetError
from tuner.measure import counters
from tuner.measure import trial as trial_module
from tuner.measure import window as load_module
from tuner.measure.trial import NO_JUDGES
from tuner.records import Role, State
from tuner.study.open_storage import open_storage
from tuner.study.storage import FAILED_VALUE, Opening

FINE = Happening()
OPENING = Opening(role=Role.SEARCH, config=CONFIG, arm="")


@pytest.fixture
def bench(monkeypatch):
    made = Bench()
    for module in (counters, load_module, trial_module):
        monkeypatch.setattr(module, "time", made.clock)
    return made


@pytest.fixture
def settings(tmp_path):
    return write_study(tmp_path)


@pytest.fixture
def storage(settings, bench):
    return open_on_disk(settings, bench.clock)


@pytest.fixture
def runner(settings, storage, bench):
    setup = replace(make_setup(settings, space_of(*TUNED)), target=bench.site, load=bench.load)
    return TrialRunner(setup=setup, plan=SMALL_PLAN, storage=storage, session="one")


def kept(settings):
    return open_storage(settings.storage_url, settings.name, create=False).trials()


def told(settings):
    return optuna.load_study(study_name=settings.name, storage=settings.storage_url).trials[-1]


def test_a_trial_is_made_measured_and_kept(runner, settings):
    made = runner.make(OPENING, value=lambda trial: 0.25 if trial.counts else None, suggest_s=0.5)

    assert made.state is State.COMPLETE
    assert [window.correct for window in made.windows] == [1000, 1000]
    assert kept(settings) == (made,)
    assert made.timing.suggest_s == 0.5
    assert made.timing.deploy_s > 0
    assert made.timing.store_s > 0
    assert told(settings).value == 0.25


def test_the_sandbox_is_left_whatever_happens(runner, bench):
    bench.script = scripted(FINE, Happening(kills_server=True))

    runner.make(OPENING)

    assert not any(sandbox.is_open for sandbox in bench.host.sandboxes)


@pytest.mark.parametrize(
    ("script", "kind", "said"),
    [
        (scripted(Happening(rate=0)), "stalled", "no correct response in 1.0 s of load"),
        (scripted(FINE, Happening(kills_server=True)), "crashed", "it was killed by signal 11"),
        (scripted(FINE, Happening(garbage=True)), "load failed", "is not understood"),
    ],
)
def test_what_goes_wrong_under_load_is_kept_with_its_class_and_reason(
    runner, settings, bench, script, kind, said
):
    bench.script = script

    made = runner.make(OPENING, value=lambda _: 0.0)

    assert made.state is State.FAILED
    assert made.failure.kind == kind
    assert said in made.failure.reason
    assert kept(settings) == (made,)
    assert told(settings).value == FAILED_VALUE
    assert told(settings).constraints["started"] > 0


@pytest.mark.parametrize(
    ("config", "kind", "said"),
    [
        ({"refusal": "refused: backlog is too high"}, "rejected", "backlog is too high"),
        ({"never_listens": True}, "not ready", "listen"),
        ({"last_words": "no memory left"}, "crashed", "no memory left"),
        ({"backlog": 9999, "net.core.somaxconn": 512}, "not effective", "512 is active"),
    ],
)
def test_what_goes_wrong_before_the_load_is_kept_with_its_class_and_reason(
    runner, settings, bench, config, kind, said
):
    made = runner.make(replace(OPENING, config=config))

    assert (made.state, made.failure.kind) == (State.FAILED, kind)
    assert said in made.failure.reason
    assert made.windows == ()
    assert bench.asked == []
    assert kept(settings) == (made,)


def test_a_trial_whose_windows_were_all_spoiled_says_nothing_about_its_configuration(runner, settings, bench):
    bench.script = scripted(FINE, Happening(stolen=0.3))

    made = runner.make(OPENING, value=lambda _: 0.5)

    assert made.state is State.INVALID
    assert "every window was spoiled: the hypervisor gave" in made.failure.reason
    assert len(made.windows) == 3
    assert told(settings).state is optuna.trial.TrialState.FAIL


def test_a_trial_that_is_hopeless_after_its_warm_up_is_pruned_and_counts(runner, settings):
    judges = replace(NO_JUDGES, judge_warm_up=lambda _: "less than half")

    made = runner.make(OPENING, judges=judges, value=lambda trial: trial.log_goodput)

    assert (made.state, made.failure.reason) == (State.PRUNED, "less than half")
    assert made.counts
    assert told(settings).value == pytest.approx(made.log_goodput)


def test_an_interruption_ends_the_trial_as_invalid_and_goes_on_up(runner, settings, bench):
    bench.script = interrupting(at=2)

    with pytest.raises(KeyboardInterrupt):
        runner.make(OPENING)

    (made,) = kept(settings)
    assert (made.state, made.failure.kind) == (State.INVALID, "stopped")
    assert len(made.windows) == 1
    assert not any(sandbox.is_open for sandbox in bench.host.sandboxes)


def test_trouble_with_the_target_is_not_the_configurations(runner, settings, bench):
    del bench.host.commands["load"]

    with pytest.raises(TargetError, match="there is no program 'load'"):
        runner.make(OPENING)
    (made,) = kept(settings)
    assert (made.state, made.failure.kind) == (State.INVALID, "interrupted")


def interrupting(*, at):
    def script(number, *_):
        if number == at:
            raise KeyboardInterrupt
        return FINE

    return script


def test_a_full_disk_ends_the_run_with_a_sentence_and_what_was_written_stays(runner, settings, storage):
    made = runner.make(OPENING)

    @event.listens_for(storage._storage.engine, "connect")
    def allow_no_more(connection, _record):
        connection.execute("PRAGMA max_page_count = 1")

    storage._storage.engine.dispose()

    with pytest.raises(
        TargetError, match=r"study.db: the storage cannot be used \(.*full.*\). Free some space"
    ):
        make_many(runner)
    assert kept(settings)[0] == made


def make_many(runner):
    for _ in range(200):
        runner.make(OPENING)


def test_a_stage_with_a_plan_and_a_load_of_its_own_gets_them(runner, bench):
    own = replace(SMALL_PLAN, window_s=20, windows=(1, 1))

    made = runner.make(OPENING, plan=own, load=replace(bench.load, rate_rps=500.0))

    assert [window.duration_s for window in made.windows] == [20.0]
    assert [argv[3] for argv in bench.asked] == ["500", "500"]


def test_failed_requests_make_a_measured_trial_infeasible(runner, settings, bench):
    default = runner.make(OPENING)
    bench.script = scripted(FINE, Happening(failures={"status": 5}))

    made = runner.make(OPENING, baselines=(default,))

    assert made.state is State.COMPLETE
    assert told(settings).constraints["failure_rate <= default"] > 0
    assert told(settings).constraints["started"] <= 0
