"""What trials cost, and how much of a study's time is left."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean, median
from typing import Protocol

from tuner.campaign.prepare import Setup
from tuner.errors import TooNoisy
from tuner.measure.validity.retries import LEAVE, NOISY
from tuner.measure.window import rest_s
from tuner.ports import Clock
from tuner.records import Role, Trial
from tuner.statistics.baseline_level import Speedup
from tuner.statistics.confirmation.power import assurance, plan_pairs
from tuner.statistics.ranking import Ranking
from tuner.statistics.time_left import Outlook, count_factorial, usual_trials
from tuner.study.facts import CONFIRMATION, ROBUSTNESS
from tuner.study.presets import Plan
from tuner.study.storage import Storage

GRACE = (25.0, 0.1)
"""Seconds, and share of a study's time, by which its last stages may take longer than planned."""
WRAP_UP_S = 10.0
"""Kept back for the report and the exports."""
MISSING_SHARE = 0.5
"""Of the factorial trials that a leader would miss after its confirmation: it may lose settings, or fail."""
PAIRED = {"robustness", "confirm", "latency"}
"""Stages that count pairs."""


class MeasuredStudy(Protocol):
    """What a schedule has to know of a study."""

    setup: Setup
    plan: Plan
    storage: Storage
    clock: Clock
    trials: list[Trial]

    def ranking(self) -> Ranking:
        """Return what all trials so far say."""

    def own_trials(self) -> list[Trial]:
        """Return the trials that were made on this host."""

    def baselines(self) -> list[Trial]:
        """Return the trials of the default on this host that are measurements."""


class Schedule:
    """The time of a study, by what its trials have taken so far."""

    def __init__(self, study: MeasuredStudy) -> None:
        """Begin a session: what earlier ones took is spent."""
        self._study = study
        now_s = study.clock.monotonic()
        self._deadline_s = now_s + study.plan.minutes * 60 - _spent_s(study.trials)
        self._stage, self._stage_trials = "", 0.0
        self._begun_s, self._made_s = now_s, 0.0

    def enter(self, stage: str, done: int, total: int) -> None:
        """Go on with a stage of which so much is done."""
        each = 2 if stage in PAIRED else 1
        self._stage = stage
        usual = usual_trials(self._study.plan, self.mean_cost_s()).get(stage, total)
        self._stage_trials = max(1, each * (usual - done))

    def begin_trial(self) -> None:
        """Count a trial of the stage."""
        self._stage_trials = max(0, self._stage_trials - 1)

    def end_trial(self, trial: Trial) -> None:
        """Count what a trial took."""
        self._made_s += cost_s(trial)

    def rest(self, seconds: float) -> None:
        """Leave out a pause in which nothing could be measured."""
        self._begun_s += seconds

    def time_left_s(self) -> float:
        return max(0.0, self._deadline_s - self._study.clock.monotonic())

    def expected_left_s(self) -> float:
        """Return the seconds that the rest of the campaign is expected to take."""
        plan, best = self._study.plan, self._study.ranking().incumbent
        gain = None if best is None else best.posterior
        planned = self._study.storage.recall(CONFIRMATION)
        if best is not None:
            changes = self._study.setup.space.changes(best.config if planned is None else planned.config)
            kept = len(changes) - (planned is None)  # a leader loses a setting on its way, as a rule
            plan = replace(plan, factorial=count_factorial(plan, kept))
        pairs, windows = self.plan_confirmation(gain)
        tried = sum(trial.role in {Role.SEARCH, Role.REPEAT} for trial in self._study.trials)
        pace = self._pace()
        outlook = Outlook(
            plan=plan,
            trial_s=pace * self.mean_cost_s(),
            pair_trial_s=pace * self._pair_trial_s(windows),
            pairs=pairs,
            extension=self._expected_extension(gain, pairs, windows),
            search_s=self.time_left_s() - plan.race_s - plan.ablation_s - self._final_s(),
            trials=max(0, plan.trials - tried),
            has_rate=self._study.setup.fixed_rate is not None and not self._study.setup.load.beside,
        )
        left_s = outlook.left_s(self._stage, self._stage_trials)
        spare_s = max(0.0, self.time_left_s() - WRAP_UP_S)
        if self._stage == "effects":
            return min(left_s, spare_s)
        missing_s = MISSING_SHARE * (plan.factorial * outlook.trial_s - plan.ablation_s)
        return left_s + max(0.0, min(missing_s, spare_s - left_s))

    def _pace(self) -> float:
        """Return the time of this session relative to that of its trials: in between is computed, too."""
        if not self._made_s:
            return 1.0
        return max(1.0, (self._study.clock.monotonic() - self._begun_s) / self._made_s)

    def _pair_trial_s(self, windows: int) -> float:
        """Return the mean seconds of a trial of the confirmation; before one was made, what is planned."""
        made = [cost_s(trial) for trial in self._study.trials if trial.role is Role.CONFIRM and trial.counts]
        if made:
            return fmean(made)
        if not self._study.plan.confirm_s:
            return self.mean_cost_s()
        return self._planned_trial_s(windows)

    def _expected_extension(self, gain: Speedup | None, pairs: int, windows: int) -> float:
        """Return how many pairs the extension is expected to add: all, times the chance that it is needed."""
        planned = self._study.storage.recall(CONFIRMATION)
        more = self._study.plan.extend_to - (pairs if planned is None else planned.pairs)
        if more <= 0 or gain is None:
            return max(0.0, more)
        return more * (1 - assurance(gain, self._study.ranking().noise, pairs=pairs, windows=windows))

    def mean_cost_s(self) -> float:
        """Return the mean seconds of a trial; how long one took whose session was killed is not known."""
        costs = [cost for trial in self._under_study_load() if (cost := cost_s(trial)) > 0]
        return sum(costs) / len(costs) if costs else 5.0

    def mean_deploy_s(self) -> float:
        """Return the mean seconds until a server was ready."""
        costs = [trial.timing.deploy_s for trial in self._under_study_load()]
        return sum(costs) / len(costs) if costs else 1.0

    def _under_study_load(self) -> list[Trial]:
        return [trial for trial in self._study.trials if trial.counts and trial.role.is_under_study_load]

    def window_s(self) -> float:
        """Return the length of a window: the plan's for each load, or as seen where requests are counted."""
        load = self._study.setup.load
        lasted = [window.duration_s for each in self._study.baselines() for window in each.valid_windows]
        is_counted = any(each.requests_total is not None for each in (load, *load.beside))
        return median(lasted) if is_counted and lasted else self._study.plan.window_s * (1 + len(load.beside))

    def warmup_s(self) -> float:
        """Return the least length of a warm-up: the plan's for each load."""
        return self._study.plan.warmup_s * (1 + len(self._study.setup.load.beside))

    def spent_s(self, role: Role) -> float:
        """Return the seconds that trials in a role have taken on this host: others work beside it."""
        return sum(cost_s(trial) for trial in self._study.own_trials() if trial.role is role)

    def limit(self, stage: str, planned_s: float) -> Callable[[], None]:
        """Begin a stage that has to end: return what raises TooNoisy once it took far longer than planned.

        A session that resumes a study has the planned time, however late it is.
        """
        least_s, share = GRACE
        grace_s = max(least_s, share * 60 * self._study.plan.minutes)
        latest_s = self._study.clock.monotonic() + max(planned_s, self.time_left_s()) + grace_s

        def refuse_late() -> None:
            if self._study.clock.monotonic() > latest_s:
                raise TooNoisy(
                    f"{NOISY}, {stage} takes far longer than the planned {planned_s:.0f} s. {LEAVE}"
                )

        return refuse_late

    def has_time_for(self, trials: int) -> bool:
        """Return whether so many trials leave the time that confirmation and fixed rate need."""
        return self.time_left_s() - trials * self.mean_cost_s() >= self._final_s()

    def has_time_to_search(self) -> bool:
        """Return whether another trial of the search leaves the time that the later stages need."""
        later_s = self._study.plan.race_s + self._study.plan.ablation_s + self._final_s()
        return self.time_left_s() - later_s > self.mean_cost_s()

    def plan_confirmation(self, gain: Speedup | None) -> tuple[int, int]:
        """Return pairs and windows per trial that are likely to prove a gain in the time there is.

        Without a gain to prove so far, those that fill the time.
        """
        plan = self._study.plan
        if not plan.confirm_s:
            return plan.pairs, plan.windows[1]
        return plan_pairs(
            gain or Speedup(log_ratio=0.0, variance=0.0),
            self._study.ranking().noise,
            least=plan.pairs,
            seconds=min(plan.confirm_s, max(0.0, self.time_left_s() - WRAP_UP_S)),
            trial_cost_s=self.mean_deploy_s() + self.warmup_s() + self._rest_s(),
            window_s=self.window_s() + self._rest_s(),
        )

    def has_time_to_confirm(self, *, besides_s: float) -> bool:
        """Return whether the fewest pairs of a confirmation fit in the time left, besides something else."""
        return self.time_left_s() >= besides_s + self._proof_s(self._study.plan.pairs, windows=1)

    def has_spare_time(self, seconds: float) -> bool:
        """Return whether so many seconds more leave the confirmation the time that it is likely to need."""
        best = self._study.ranking().incumbent
        pairs, windows = self.plan_confirmation(None if best is None else best.posterior)
        return self.time_left_s() >= seconds + self._proof_s(pairs, windows)

    def _final_s(self) -> float:
        """Return the seconds that robustness checks, confirmation and exports need, as things stand.

        Until the first candidate has passed its check, a second one has time for its own.
        """
        best = self._study.ranking().incumbent
        checks = 1 if self._study.storage.recall(ROBUSTNESS) else 2
        proof_s = self._proof_s(*self.plan_confirmation(None if best is None else best.posterior))
        return checks * self._study.plan.robustness_s + proof_s

    def _proof_s(self, pairs: int, windows: int) -> float:
        """Return the seconds of the confirmation and all that follows it."""
        plan, each_s = self._study.plan, self.mean_cost_s()
        confirm_s = self.pairs_s(pairs, windows) if plan.confirm_s else 2 * plan.extend_to * each_s
        rate_s = 2 * plan.rate_pairs * (each_s + plan.rate_window_s)
        return confirm_s + rate_s + WRAP_UP_S

    def pairs_s(self, pairs: int, windows: int) -> float:
        """Return the seconds that pairs of the confirmation take when nothing spoils them."""
        return 2 * pairs * self._planned_trial_s(windows)

    def _planned_trial_s(self, windows: int) -> float:
        """Return the seconds of a trial with so many windows."""
        return (
            self.mean_deploy_s()
            + self.warmup_s()
            + windows * self.window_s()
            + (windows + 1) * self._rest_s()
        )

    def _rest_s(self) -> float:
        """Return what a slow application is waited for before each window."""
        return rest_s(self._study.setup.load, self._study.plan.window_s)


def cost_s(trial: Trial) -> float:
    """Return the seconds that a trial took."""
    return trial.timing.suggest_s + trial.timing.deploy_s + trial.timing.load_s


def _spent_s(trials: Sequence[Trial]) -> float:
    """Return the seconds that a study has taken so far: hosts work beside each other."""
    spent: dict[str, float] = {}
    for trial in trials:
        spent[trial.host] = spent.get(trial.host, 0.0) + cost_s(trial)
    return max(spent.values(), default=0.0)
