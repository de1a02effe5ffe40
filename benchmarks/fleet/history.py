"""Writes trials that nobody made into a study of several hosts, as if its workers had been at it for long."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from optuna.trial import TrialState, create_trial

from benchmarks.campaign.host import DrawnHost
from benchmarks.campaign.servers import Server
from tuner.campaign.experiment import Experiment
from tuner.optimize.sparse import draw_sparse
from tuner.ports import Config
from tuner.records import Role, State, Timing, Trial
from tuner.records.as_json import END, ending_to_json, opening_to_json, window_key, window_to_json
from tuner.space import Space
from tuner.statistics.ranking import DEFAULT_ARM

BASELINE_EVERY = 6
"""Trials of each host, of which one is of the default."""
REPEAT_EVERY = 6
"""Trials, of which one repeats another."""


def write_history(experiment: Experiment, server: Server, count: int, *, hosts: int) -> None:
    """Write so many finished trials, those of all hosts side by side, with what the simulated host gives.

    What only Optuna's own tools read of them, the parameters, is left out: it takes longest.
    """
    host = DrawnHost(server=server, seed=count)  # of a clock of its own, on which nobody waits
    space, plan = experiment.setup.space, experiment.plan
    trial_s = plan.warmup_s + plan.windows[1] * plan.window_s
    rng = Random(count)  # noqa: S311 - no secret
    tried: list[Config] = []
    first_s = experiment.clock.time() - trial_s * (1 + count // hosts)
    for number in range(count):
        role = choose_role(number // hosts, number)
        config = choose_config(role, space, tried, rng)
        tried.append(config)
        luck = rng.gauss(0.0, host.sigma_trial)
        began_s = first_s + trial_s * (number // hosts)
        trial = Trial(
            number=number, role=role, config=config,
            state=State.COMPLETE, started_s=began_s, arm=DEFAULT_ARM if role is Role.BASELINE else "",
            session="earlier", host=f"web{number % hosts}",
            timing=Timing(deploy_s=1.0, load_s=trial_s - 1.0),
        )  # fmt: skip
        told = create_trial(
            state=TrialState.COMPLETE, value=0.0,
            user_attrs=opening_to_json(trial) | {END: ending_to_json(trial)} | {
                window_key(index): window_to_json(
                    replace(
                        host.window(config, host.worth(config) + luck, plan.window_s),
                        started_s=began_s + plan.warmup_s + index * plan.window_s,
                    )
                )
                for index in range(plan.windows[1])
            },
        )  # fmt: skip
        experiment.storage._study.add_trial(told)  # noqa: SLF001 - nobody else writes trials that were not made


def choose_role(turn: int, number: int) -> Role:
    """Return why a host's trial of a turn was made."""
    if turn % BASELINE_EVERY == 0:
        return Role.BASELINE
    return Role.REPEAT if number % REPEAT_EVERY == 1 else Role.SEARCH


def choose_config(role: Role, space: Space, tried: Sequence[Config], rng: Random) -> Config:
    """Return the default, one that was tried before, or one near the default that breaks no rule."""
    if role is Role.BASELINE:
        return space.default()
    if role is Role.REPEAT:
        return rng.choice(tried)
    while True:
        point = draw_sparse(space.dimensions, space.encode(space.default()), rng=rng)
        config = space.decode(point)
        if not space.violations(config):
            return config
