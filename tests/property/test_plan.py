from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tuner.study.presets import LEAST_CALIBRATION, LEAST_PAIRS, PRESETS, Plan

plans = st.sampled_from(list(PRESETS.values()))
budgets = st.floats(0.1, 7 * 24 * 60)


def longest_stages_s(plan: Plan, cost_s: float) -> float:
    """Seconds of everything but the search, when a trial takes so long."""
    confirm_s = plan.confirm_s or 2 * plan.pairs * cost_s
    rate_s = 2 * plan.rate_pairs * (cost_s + plan.rate_window_s)
    later_s = plan.race_s + plan.ablation_s + plan.robustness_s
    return plan.calibration_trials * cost_s + later_s + confirm_s + rate_s


@given(plan=plans, minutes=st.none() | budgets, trials=st.none() | st.integers(1, 100_000))
def test_any_budget_gives_a_plan_that_can_be_carried_out(plan, minutes, trials):
    fitted = plan.fit(minutes=minutes, trials=trials)

    assert fitted.minutes == (plan.minutes if minutes is None else minutes)
    assert fitted.trials == (plan.trials if trials is None else trials)
    assert LEAST_CALIBRATION <= fitted.calibration_trials <= max(LEAST_CALIBRATION, plan.calibration_trials)
    assert LEAST_PAIRS <= fitted.pairs <= max(LEAST_PAIRS, plan.pairs)
    assert fitted.pairs <= fitted.extend_to <= plan.extend_to
    assert 0 <= fitted.race_s <= plan.race_s
    assert 0 <= fitted.ablation_s <= plan.ablation_s
    assert 0 <= fitted.confirm_s <= plan.confirm_s
    assert 1 <= fitted.windows[0] <= fitted.windows[1]
    assert fitted.windows in {plan.windows, (plan.windows[0], plan.windows[0])}
    assert fitted.window_s == plan.window_s


@given(plan=plans, minutes=budgets)
def test_the_confirmation_has_the_time_for_its_fewest_pairs(plan, minutes):
    fitted = plan.fit(minutes=minutes, trials=None)

    if fitted.confirm_s:
        shortest_s = fitted.warmup_s + fitted.windows[0] * fitted.window_s
        assert 2 * fitted.pairs * shortest_s <= fitted.confirm_s


@given(plan=plans, minutes=budgets)
def test_response_times_are_compared_in_enough_pairs_or_not_at_all(plan, minutes):
    assert plan.fit(minutes=minutes, trials=None).rate_pairs in {0, *range(3, plan.rate_pairs + 1)}


@given(plan=plans, first=budgets, second=budgets)
def test_more_minutes_never_give_less_of_any_stage(plan, first, second):
    less, more = (plan.fit(minutes=minutes, trials=None) for minutes in sorted((first, second)))

    for name in ("calibration_trials", "race_s", "ablation_s", "pairs", "extend_to", "confirm_s",
                 "rate_pairs", "robustness_s", "factorial"):  # fmt: skip
        assert getattr(less, name) <= getattr(more, name)


@given(plan=plans, share=st.floats(0.25, 1.0))
def test_with_a_quarter_of_a_presets_time_a_quarter_of_it_is_left_to_the_search(plan, share):
    """With trials that cost what the preset's windows and warm-up take."""
    minutes = plan.minutes * share
    cost_s = 0.5 + plan.warmup_s + plan.windows[1] * plan.window_s

    fitted = plan.fit(minutes=minutes, trials=None)

    assert longest_stages_s(fitted, cost_s) < 0.75 * 60 * minutes


@given(plan=plans, minutes=budgets)
def test_what_was_fitted_once_fits_again(plan, minutes):
    fitted = plan.fit(minutes=minutes, trials=None)

    assert fitted.fit(minutes=minutes, trials=None) == fitted
    assert replace(fitted, minutes=plan.minutes).fit(minutes=None, trials=None).minutes == plan.minutes
