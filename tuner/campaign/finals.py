"""The stages after the search: race the best, drop what does not matter, confirm what is left."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

from tuner.campaign.pairs import Pairing, measure_pairs, read_pairs
from tuner.campaign.search import observe
from tuner.measure.calibrate import plan_confirmation
from tuner.optimize.change_ranking import rank_changes
from tuner.ports import Config
from tuner.records import Role
from tuner.statistics.confirm import Gain, claim, needs_extension
from tuner.statistics.race import race_order, survivors
from tuner.statistics.ranking import DEFAULT_ARM, WINNER_ARM, config_key
from tuner.study.objective import Constraint, broken
from tuner.study.storage import Opening, Storage

if TYPE_CHECKING:
    from tuner.campaign.campaign import Campaign
    from tuner.records import Start

CONFIRMED = "confirmed"
WRAP_UP_S = 10.0
"""Kept back for the report and the exports."""
MARGIN = 0.01
MARGIN_SHARE = 0.1
"""A setting may go when that costs less than 1 %, or less than a tenth of the gain."""


def race(campaign: "Campaign") -> Config | None:
    """Measure the best few and the default in randomised blocks; return the one that leads.

    None means that nothing was better than the default, or nothing was measured at all.
    """
    finalist: list[Config] | None = campaign.storage.recall("finalist")
    if finalist is None:
        # Kept, because the starts of later stages change the ranking.
        finalist = _find_finalist(campaign)
        campaign.storage.remember("finalist", finalist)
    return finalist[0] if finalist else None


def _find_finalist(campaign: "Campaign") -> list[Config]:
    """Race; give the one that leads, or nothing."""
    arms: dict[str, Config] | None = campaign.storage.recall("race")
    if arms is None:
        ranking = [entry for entry in campaign.standing().ranking if entry.posterior.log_ratio > 0]
        space = campaign.rig.space
        # Starts that were made before capacity was guarded may be in the storage.
        best = [entry for entry in ranking if space.allows_less or not space.lacks(entry.config)]
        arms = {f"#{rank}": entry.config for rank, entry in enumerate(best[: campaign.plan.race_arms], 1)}
        campaign.storage.remember("race", arms)
    alive = tuple(arms)
    if len(arms) > 1:
        alive = _run_blocks(campaign, {DEFAULT_ARM: campaign.default, **arms})
    finalists = [dict(arms[arm]) for arm in alive if arm != DEFAULT_ARM]
    better = [entry for entry in campaign.standing().ranking if entry.posterior.log_ratio > 0]
    return [entry.config for entry in better if dict(entry.config) in finalists][:1]


def _run_blocks(campaign: "Campaign", arms: Mapping[str, Config]) -> tuple[str, ...]:
    plan = campaign.plan
    alive = tuple(arms)
    order = race_order(alive, plan.race_blocks, campaign.random("race"))
    for block, sequence in enumerate(order):
        campaign.progress.stage("race", block, plan.race_blocks)
        if not campaign.has_time_for(len(alive)):
            break
        for arm in sequence:
            if arm in alive and arm not in _logs_of_block(campaign, block, alive):
                campaign.make(Opening(role=Role.RACE, config=arms[arm], arm=arm, block=block))
        blocks = [_logs_of_block(campaign, each, alive) for each in range(block + 1)]
        feasible = {entry.key for entry in campaign.standing().ranking}
        alive = tuple(arm for arm in alive if arm == DEFAULT_ARM or config_key(arms[arm]) in feasible)
        whole = [logs for logs in blocks if set(alive) <= set(logs)]
        if whole:
            alive = survivors(whole, default=DEFAULT_ARM, first_test=plan.race_first_test)
        if sum(arm != DEFAULT_ARM for arm in alive) <= 1:
            break
    return alive


def _logs_of_block(campaign: "Campaign", block: int, arms: Sequence[str]) -> dict[str, float]:
    """Give the log goodputs of one block, all of one session: with hours in between it would be none.

    Those of a session that measured all these arms, or else what this session has so far.
    """
    sessions: dict[str, dict[str, float]] = {}
    for start in campaign.starts:
        if start.role is Role.RACE and start.block == block and start.counts:
            sessions.setdefault(start.session, {})[start.arm] = start.log_goodput or 0.0
    whole = [logs for logs in sessions.values() if set(arms) <= set(logs)]
    return whole[0] if whole else sessions.get(campaign.starter.session, {})


def simplify(campaign: "Campaign", winner: Config) -> Config:
    """Put back to the default what the gain does not need; the smallest configuration is what ships.

    Each step reverts the share of the changes that the starts so far say matters least, and compares
    before and after in adjacent pairs. After a reduction that costs too much, only half as many are tried.
    """
    steps: list[dict[str, Any]] = campaign.storage.recall("simplify", [])
    current, share = dict(winner), 0.5
    taken = [current]
    for number in range(campaign.plan.simplify_steps):
        campaign.progress.stage("simplify", number, campaign.plan.simplify_steps)
        if number == len(steps):
            if not campaign.has_time_for(2 * campaign.plan.simplify_pairs):
                break
            reduced = _reduce(campaign, current, share)
            if reduced is None:
                break
            # Kept before it is measured, so that pairs of two sessions compare the same.
            steps.append({"config": dict(reduced)})
            campaign.storage.remember("simplify", steps)
        step = steps[number]
        if "accepted" not in step:
            # The configurations are held against the default in the end, and the host may have changed.
            campaign.make_control()
            step["accepted"] = _costs_nothing(campaign, current, step["config"], number)
            campaign.storage.remember("simplify", steps)
        if step["accepted"]:
            current = dict(step["config"])
            taken.append(current)
        else:
            share /= 2
    return _smallest_that_is_as_good(campaign, taken)


def _smallest_that_is_as_good(campaign: "Campaign", taken: Sequence[Config]) -> Config:
    """Choose among the winner and its reductions by all their starts, in the race and in every step.

    A step is decided by a few pairs, in which a setting that matters may seem not to.
    """
    found = {entry.key: entry.speedup.log_ratio for entry in campaign.standing().ranking}
    measured = [config for config in taken if config_key(config) in found]
    if not measured:
        return taken[0]
    best = max(found[config_key(config)] for config in measured)
    margin = max(MARGIN, MARGIN_SHARE * best)
    return next(config for config in reversed(measured) if found[config_key(config)] >= best - margin)


def _reduce(campaign: "Campaign", config: Config, share: float) -> Config | None:
    """Revert the least important share of the changes; None when not one would be left out."""
    space = campaign.rig.space
    ranked = _rank_changes(campaign, config)
    kept = ranked[math.floor(len(ranked) * share) :]
    if len(kept) == len(ranked) or not kept:
        return None
    reduced = space.complete({name: config[name] for name in kept}, fit=True)
    return None if space.violations(reduced) else reduced


def _rank_changes(campaign: "Campaign", config: Config) -> list[str]:
    """Name the parameters that a configuration changes, the one that seems to matter least first."""
    return rank_changes(campaign.rig.space, observe(campaign, campaign.standing()), config)


def _costs_nothing(campaign: "Campaign", whole: Config, reduced: Config, step: int) -> bool:
    pairing = Pairing(
        role=Role.ABLATION,
        sides={f"whole {step}": whole, f"reduced {step}": reduced},
        pairs=campaign.plan.simplify_pairs,
        rng=campaign.random(f"simplify {step}"),
        first_block=step * campaign.plan.simplify_pairs,
    )
    paired = measure_pairs(pairing, campaign.starts, campaign.make, lambda *_: None)
    _, arm = pairing.sides
    of_reduced = [start for start in campaign.starts if start.role is Role.ABLATION and start.arm == arm]
    if paired.failed or not paired.logs or broken(of_reduced, campaign.rig.settings.constraints):
        return False
    costs = [before - after for before, after in paired.logs]
    doubt = stdev(costs) / math.sqrt(len(costs)) if len(costs) > 1 else 0.0
    best = campaign.standing().incumbent
    gain = best.posterior.log_ratio if best else 0.0
    # The doubt goes to the smaller configuration for now: a setting that nobody can show to matter is one
    # more that somebody has to maintain, and in the end all starts decide.
    return mean(costs) - doubt < max(MARGIN, MARGIN_SHARE * gain)


def confirm(campaign: "Campaign", winner: Config) -> str:
    """Measure fresh default/winner pairs, and once more as many when they do not decide.

    How many pairs there are, and how many windows, is settled and kept before the first of them.
    """
    plan = campaign.plan
    record = campaign.storage.recall("confirm")
    if record is None:
        pairs, windows = plan_confirmation(
            campaign.standing().noise,
            plan,
            campaign.mean_deploy_s(),
            seconds=max(0.0, campaign.time_left_s() - WRAP_UP_S),
        )
        extend_to = max(pairs, plan.extend_to)
        record = {"config": dict(winner), "pairs": pairs, "windows": windows, "extend_to": extend_to}
        # Kept, too: a claim is judged by what was planned, whatever budget it is read with.
        record["looks"] = 2 if extend_to > pairs else 1
        campaign.storage.remember("confirm", record)
    constraints = campaign.rig.settings.constraints
    failed = _confirm_pairs(campaign, record)
    gain = read_gain(campaign.storage, campaign.starts, campaign.default, constraints)
    more = record["extend_to"] - record["pairs"]
    may_extend = more > 0 and failed is None and campaign.time_left_s() >= 2 * more * campaign.mean_cost_s()
    if may_extend and gain is not None and needs_extension(gain):
        campaign.progress.note("the pairs do not decide; the planned extension follows")
        record = record | {"pairs": record["extend_to"]}
        campaign.storage.remember("confirm", record)
        failed = _confirm_pairs(campaign, record)
        gain = read_gain(campaign.storage, campaign.starts, campaign.default, constraints)
    if failed is not None:
        return f"not confirmed: {failed}"
    if violated := broken(_winners_starts(campaign.starts), constraints):
        return f"not confirmed: the winner breaks {' and '.join(violated)}"
    return CONFIRMED if gain is not None and gain.verdict == "improved" else "not proven"


def _confirm_pairs(campaign: "Campaign", record: Mapping[str, Any]) -> str | None:
    plan = campaign.plan
    own_plan = replace(plan, windows=(record["windows"], record["windows"]))
    seed = campaign.rig.settings.seed
    paired = measure_pairs(
        confirmation(record["config"], campaign.default, record["pairs"], seed),
        campaign.starts,
        lambda opening: campaign.make(opening, plan=own_plan),
        lambda done, total: campaign.progress.stage("confirm", done, total),
    )
    return paired.failed


def confirmation(winner: Config, default: Config, pairs: int, seed: int) -> Pairing:
    """Describe the confirmation, the same in every session and in every report."""
    return Pairing(
        role=Role.CONFIRM,
        sides={DEFAULT_ARM: default, WINNER_ARM: winner},
        pairs=pairs,
        rng=Random(f"{seed}/confirm"),  # noqa: S311 - no secret
    )


def read_gain(
    storage: Storage, starts: Sequence["Start"], default: Config, constraints: Sequence[Constraint]
) -> Gain | None:
    """Recompute the confirmed gain from the stored pairs; None before all of them are there.

    A winner that breaks a constraint in the confirmation has improved nothing.
    """
    record = storage.recall("confirm")
    if record is None:
        return None
    logs = read_pairs(starts, confirmation(record["config"], default, record["pairs"], 0))
    if len(logs) < record["pairs"]:
        return None
    gain = claim(logs, looks=record["looks"])
    return replace(gain, verdict="not proven") if broken(_winners_starts(starts), constraints) else gain


def _winners_starts(starts: Sequence["Start"]) -> list["Start"]:
    return [start for start in starts if start.role is Role.CONFIRM and start.arm == WINNER_ARM]
