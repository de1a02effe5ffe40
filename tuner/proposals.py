"""What the search measures next: presets, what the optimizer suggests, or once more what may be the best."""

from typing import TYPE_CHECKING

from tuner.measure.promotion import promising
from tuner.objective import slacks
from tuner.optimize.optimizer import Observation, Point
from tuner.ports import Config
from tuner.records import Role, State
from tuner.standing import Entry, Standing, config_key

if TYPE_CHECKING:
    from tuner.study import Campaign

PROMOTE_EVERY = 5
"""New configurations between two that may be measured again instead (the measurement protocol's share)."""
MOST_SUGGESTIONS = 100
"""Suggestions in a row that may break a constraint."""
MOST_KNOWN = 10
"""Suggestions in a row that may have been tried: then the space is taken for exhausted."""


def suggest(campaign: "Campaign", standing: Standing) -> tuple[Config, Point]:
    """Presets first, then the optimizer; a configuration that breaks a constraint is never deployed."""
    space = campaign.rig.space
    tried = {config_key(start.config) for start in campaign.starts if start.state is not State.INVALID}
    for preset in space.presets:
        config = space.complete(preset.values)
        if config_key(config) not in tried:
            return config, space.encode(config)
    observations = observe(campaign, standing)
    seed = campaign.rig.settings.seed * 1_000_003 + len(campaign.starts)
    known: list[Config] = []
    for attempt in range(MOST_SUGGESTIONS):
        point = campaign.optimizer.suggest(space.dimensions, observations, seed=seed + attempt * 7919)
        config = space.decode(point)
        if space.violations(config):
            continue
        if config_key(config) not in tried:
            return config, space.encode(config)
        known.append(config)
        if len(known) == MOST_KNOWN:
            break
    # Where next to everything was tried, another start of the same tells more than nothing.
    again = known[0] if known else campaign.default
    return again, space.encode(again)


def observe(campaign: "Campaign", standing: Standing) -> list[Observation]:
    """Give the optimizer every start of the search, with the speedup and variance as known by now."""
    seen = []
    for start in campaign.starts:
        if start.role is Role.CONTROL or start.state is State.INVALID:
            continue
        speedup = standing.speedups.get(start.number)
        seen.append(
            Observation(
                point=campaign.rig.space.encode(start.config),
                log_ratio=None if speedup is None else speedup.log_ratio,
                variance=0.0 if speedup is None else speedup.variance,
                constraints=slacks(start, campaign.rig.settings.constraints),
            )
        )
    return seen


def promising_entry(campaign: "Campaign", standing: Standing) -> Entry | None:
    """After every few new configurations: is there one that may be best and was measured too little?"""
    new = [start for start in campaign.starts if start.role is Role.SEARCH]
    repeats = [start for start in campaign.starts if start.role is Role.REPEAT]
    if len(new) < PROMOTE_EVERY * (len(repeats) + 1):
        return None
    entries = {entry.key: entry for entry in standing.ranking}
    key = promising(
        {key: entry.speedup for key, entry in entries.items()},
        {key: entry.starts for key, entry in entries.items()},
        seed=campaign.rig.settings.seed + len(campaign.starts),
    )
    return entries[key] if key is not None else None
