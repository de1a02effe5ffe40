from tuner.measure.validity import RetryBudget, Thresholds
from tuner.measure.validity.retries import LEAVE
from tuner.records import Blame, Check, Verdict

SPOILED = (Verdict(check=Check.FOREIGN, blame=Blame.ENVIRONMENT, reason="other programs."),)
STOLEN = (Verdict(check=Check.STEAL, blame=Blame.ENVIRONMENT, reason="the hypervisor."),)
WARNED = (Verdict(check=Check.SATURATED, blame=Blame.WARNING, reason="the generator."),)
BLAMED = (Verdict(check=Check.ERRORS, blame=Blame.CONFIGURATION, reason="it fails."),)


def measure(budget, windows, *, spoiled_every, step_s=5.0, verdicts=SPOILED):
    """Note windows of which every so many is spoiled."""
    for number in range(1, windows + 1):
        spoiled = number % spoiled_every == 0
        budget.allows_another(verdicts if spoiled else (), at_s=number * step_s)


def test_a_window_is_tried_three_times():
    budget = RetryBudget()
    budget.begin_trial()
    budget.begin_window()

    assert [budget.allows_another(SPOILED, at_s=float(at)) for at in range(3)] == [True, True, False]


def test_a_trial_has_three_retries_over_all_its_windows():
    budget = RetryBudget()
    budget.begin_trial()
    answers = []
    for _ in range(4):
        budget.begin_window()
        answers.append(budget.allows_another(SPOILED, at_s=0.0))

    assert answers == [True, True, True, False]


def test_the_next_trial_has_its_own_retries():
    budget = RetryBudget()
    for _ in range(4):
        budget.begin_window()
        budget.allows_another(SPOILED, at_s=0.0)

    budget.begin_trial()
    budget.begin_window()

    assert budget.allows_another(SPOILED, at_s=1.0)


def test_only_the_environments_fault_is_tried_again():
    budget = RetryBudget()

    assert not budget.allows_another((), at_s=0.0)
    assert not budget.allows_another(WARNED, at_s=0.0)
    assert not budget.allows_another(BLAMED, at_s=0.0)


def test_a_host_that_spoils_one_window_in_five_is_not_too_noisy():
    budget = RetryBudget()
    measure(budget, 100, spoiled_every=5)

    assert budget.complain() is None


def test_a_host_that_spoils_more_is_given_a_pause_with_the_figure():
    budget = RetryBudget()
    measure(budget, 40, spoiled_every=4)

    noisy = budget.complain()

    assert noisy is not None
    assert (noisy.share, noisy.windows, noisy.pause_s) == (0.25, 40, 120.0)
    assert noisy.found == ("host: too noisy, 10 of the last 40 windows (25 %) were spoiled by foreign CPU.")
    assert noisy.advice == "tuner waits up to 120 s for the noise to pass."


def test_a_host_that_is_still_too_noisy_after_the_pause_is_given_up_with_what_can_be_proved_on_it():
    budget = RetryBudget()
    measure(budget, 40, spoiled_every=4)
    budget.complain()
    budget.rested(120.0)
    measure(budget, 40, spoiled_every=2, verdicts=STOLEN)

    noisy = budget.complain(provable_gain=0.142)

    assert noisy is not None
    assert noisy.pause_s is None
    assert noisy.found == (
        "host: too noisy, 20 of the last 40 windows (50 %) were spoiled by steal. This machine cannot "
        "prove gains below 14.2 %."
    )
    assert noisy.advice == LEAVE


def test_noise_that_passed_soon_may_be_waited_for_again_until_the_patience_is_used_up():
    budget = RetryBudget()
    pauses = []
    for _ in range(4):
        measure(budget, 40, spoiled_every=2)
        noisy = budget.complain()
        assert noisy is not None
        pauses.append(noisy.pause_s)
        budget.rested(40.0)

    assert pauses == [120.0, 80.0, 40.0, None]


def test_windows_after_a_pause_are_judged_by_themselves():
    budget = RetryBudget()
    measure(budget, 40, spoiled_every=2)
    budget.complain()
    measure(budget, 40, spoiled_every=10)

    assert budget.complain() is None


def test_a_few_windows_say_nothing_about_a_host():
    budget = RetryBudget()
    measure(budget, 19, spoiled_every=1)

    assert budget.complain() is None


def test_windows_of_long_ago_are_forgotten():
    budget = RetryBudget()
    measure(budget, 30, spoiled_every=1)
    for number in range(30):
        budget.allows_another((), at_s=1_000.0 + 5 * number)

    assert budget.complain() is None


def test_the_gates_that_spoiled_most_are_named_first():
    budget = RetryBudget()
    measure(budget, 10, spoiled_every=1, verdicts=SPOILED)
    measure(budget, 20, spoiled_every=1, verdicts=STOLEN)

    noisy = budget.complain()

    assert noisy is not None
    assert "spoiled by steal, foreign CPU" in noisy.found


def test_the_budget_may_be_set_differently():
    budget = RetryBudget(Thresholds(retries_per_window=0))

    assert not budget.allows_another(SPOILED, at_s=0.0)
