"""A contest, recomputed from its storage: what each entrant gave, and the ratio of each to each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from tuner.campaign.schedule import cost_s
from tuner.errors import UsageError
from tuner.ports import Scalar
from tuner.records import Metric, Trial
from tuner.report.summary import Arm, gather_arms
from tuner.space import Space
from tuner.space.problems import suggest
from tuner.statistics.arms.all_pairs import AllPairs, judge_all_pairs
from tuner.statistics.arms.faults import count_whole_blocks, find_faults
from tuner.statistics.response_curve import Estimate
from tuner.study import Study
from tuner.study.facts import CONTEST, ContestPlan
from tuner.study.objective import cpu_per_request
from tuner.study.storage import Storage

CONTESTS = "contests"
"""Folder of a study in which each contest has a storage of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Configurations of one or several studies, measured against each other in interleaved blocks."""

    plan: ContestPlan
    """Which configurations take part, and under which names."""
    workload: str
    """What the load generator sends, in words."""
    metric: Metric
    """What is compared."""
    spaces: Mapping[str, Space]
    """Of each study, by its name."""
    pairs: AllPairs
    """Ratio of every configuration to every other."""
    arms: tuple[Arm, ...]
    """What the trials of each entrant gave, in the order of the plan."""
    cpu_us: tuple[float | None, ...]
    """CPU time of the servers per correct response, in microseconds; the median over trials."""
    faults: Mapping[int, str]
    """Entrant → why it may not be named best."""
    blocks: int
    """That hold every entrant which did not fail."""
    trials: int
    """Trials of all configurations together."""
    seconds: float
    """Wall time of all of it."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the name of each entrant, with its study where there are several."""
        several = len(self.plan.studies) > 1
        return tuple(f"{each.study} {each.name}" if several else each.name for each in self.plan.entrants)

    @property
    def leaders(self) -> tuple[int, ...]:
        """Return the entrants without fault that are shown to be behind none of the others."""
        return self.pairs.leaders([each for each in range(len(self.arms)) if each not in self.faults])

    @property
    def marked(self) -> tuple[int, ...]:
        """Return the leaders without those that are not told apart from the default of their study."""
        return tuple(each for each in self.leaders if self._is_told_from_default(each))

    def _is_told_from_default(self, index: int) -> bool:
        own = self.of_study(self.plan.entrants[index].study)
        default = next((each for each in own if not self.changes(each)), index)
        found = self.pairs.estimates.get((index, default))
        return index == default or (found is not None and found.low > 1)

    def ratio(self, over: str, under: str) -> Estimate | None:
        """Return the ratio of one entrant to another, by their labels. Raises UsageError."""
        for label in (over, under):
            if label not in self.labels:
                raise UsageError(
                    f"{label!r} is no configuration of this comparison. {suggest(label, self.labels)}"
                )
        return self.pairs.estimates.get((self.labels.index(over), self.labels.index(under)))

    def of_study(self, study: str) -> tuple[int, ...]:
        """Return the entrants of a study, its baseline first."""
        return tuple(index for index, each in enumerate(self.plan.entrants) if each.study == study)

    def changes(self, index: int) -> Mapping[str, tuple[Scalar, Scalar]]:
        """Return what an entrant changes: parameter → default and value."""
        entrant = self.plan.entrants[index]
        return self.spaces[entrant.study].changes(entrant.config)

    def _repr_mimebundle_(self, **options: object) -> object:
        """Return the figure, as notebooks show it."""
        from tuner.report.contest.page import draw_contest
        from tuner.report.figures.objects import to_bundle

        return to_bundle(draw_contest(self), **options)


def gather_contest(settings: Mapping[str, Study], spaces: Mapping[str, Space], storage: Storage) -> Contest:
    """Recompute a contest from its storage. Raises UsageError when it holds none."""
    plan = storage.recall(CONTEST)
    if plan is None:
        raise UsageError("this folder has no comparison of servers. Make one with `tuner versus`.")
    trials = storage.trials()
    by_arm = [[trial for trial in trials if trial.arm == each.arm] for each in plan.entrants]
    return Contest(
        plan=plan, metric=storage.metric, spaces=spaces,
        workload=settings[plan.studies[0]].load.describe(),
        pairs=judge_all_pairs(trials, [each.arm for each in plan.entrants]),
        arms=gather_arms({each.arm: each.config for each in plan.entrants}, trials),
        cpu_us=tuple(map(_median_cpu_us, by_arm)),
        faults=_find_faults(plan, settings, trials),
        blocks=count_whole_blocks(trials, [each.arm for each in plan.entrants]),
        trials=sum(trial.counts for trial in trials), seconds=sum(map(cost_s, trials)),
    )  # fmt: skip


def _median_cpu_us(trials: Sequence[Trial]) -> float | None:
    found = [cost for trial in trials if trial.counts and (cost := cpu_per_request(trial)) is not None]
    return median(found) if found else None


def _find_faults(
    plan: ContestPlan, settings: Mapping[str, Study], trials: Sequence[Trial]
) -> Mapping[int, str]:
    """Judge the entrants of each study by its own bounds."""
    places = {each.arm: index for index, each in enumerate(plan.entrants)}
    found: dict[int, str] = {}
    for study in plan.studies:
        arms = {each.arm: each.config for each in plan.entrants if each.study == study}
        own = [trial for trial in trials if trial.arm in arms]
        baseline, constraints = next(iter(arms.values())), settings[study].constraints
        found |= {places[arm]: fault for arm, fault in find_faults(arms, baseline, own, constraints).items()}
    return found
