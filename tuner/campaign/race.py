"""The race: the best of the search and the default in randomised blocks of fresh starts."""

from collections.abc import Mapping, Sequence

from tuner.campaign.experiment import Experiment
from tuner.ports import Config
from tuner.records import Role
from tuner.statistics.elimination import race_order, survivors
from tuner.statistics.ranking import DEFAULT_ARM, Entry, config_key
from tuner.study.facts import FINALIST, RACE_ARMS
from tuner.study.storage import Opening


def race(experiment: Experiment) -> Config | None:
    """Measure the best few and the default in randomised blocks; return the one that leads.

    None means that nothing was better than the default, or nothing was measured at all.
    """
    finalist = experiment.storage.recall(FINALIST)
    if finalist is None:
        # Kept, because the starts of later stages change the ranking.
        finalist = _find_finalist(experiment)
        experiment.storage.remember(FINALIST, finalist)
    return finalist[0] if finalist else None


def _find_finalist(experiment: Experiment) -> tuple[Config, ...]:
    """Race; return the one that leads, or nothing."""
    arms = experiment.storage.recall(RACE_ARMS)
    if arms is None:
        space = experiment.setup.space
        # Starts that were made before capacity was guarded may be in the storage.
        best = [entry for entry in _better(experiment) if space.allows_less or not space.lacks(entry.config)]
        best = best[: experiment.plan.race_arms]
        arms = {f"#{number}": entry.config for number, entry in enumerate(best, 1)}
        experiment.storage.remember(RACE_ARMS, arms)
    alive = _run_blocks(experiment, {DEFAULT_ARM: experiment.default, **arms}) if len(arms) > 1 else [*arms]
    finalists = [dict(arms[arm]) for arm in alive if arm != DEFAULT_ARM]
    return tuple(entry.config for entry in _better(experiment) if dict(entry.config) in finalists)[:1]


def _better(experiment: Experiment) -> list[Entry]:
    """Return what is better than the default by posterior mean, best first."""
    return [entry for entry in experiment.ranking().entries if entry.posterior.log_ratio > 0]


def _run_blocks(experiment: Experiment, arms: Mapping[str, Config]) -> Sequence[str]:
    plan = experiment.plan
    alive: Sequence[str] = tuple(arms)
    order = race_order(alive, plan.race_blocks, experiment.random("race"))
    for block, sequence in enumerate(order):
        experiment.progress.stage("race", block, plan.race_blocks)
        if not experiment.has_time_for(len(alive)):
            break
        for arm in sequence:
            if arm in alive and arm not in _block_logs(experiment, block, alive):
                experiment.make(Opening(role=Role.RACE, config=arms[arm], arm=arm, block=block))
        blocks = [_block_logs(experiment, each, alive) for each in range(block + 1)]
        feasible = {entry.key for entry in experiment.ranking().entries}
        alive = [arm for arm in alive if arm == DEFAULT_ARM or config_key(arms[arm]) in feasible]
        whole = [logs for logs in blocks if set(alive) <= set(logs)]
        if whole:
            alive = survivors(whole, default=DEFAULT_ARM, first_test=plan.race_first_test)
        if sum(arm != DEFAULT_ARM for arm in alive) <= 1:
            break
    return alive


def _block_logs(experiment: Experiment, block: int, arms: Sequence[str]) -> dict[str, float]:
    """Return the log goodputs of one block, all of one session: with hours in between it would be none.

    Those of a session that measured all these arms, or else what this session has so far.
    """
    sessions: dict[str, dict[str, float]] = {}
    for start in experiment.starts:
        if start.role is Role.RACE and start.block == block and start.counts:
            sessions.setdefault(start.session, {})[start.arm] = start.log_value or 0.0
    whole = [logs for logs in sessions.values() if set(arms) <= set(logs)]
    return whole[0] if whole else sessions.get(experiment.starter.session, {})
