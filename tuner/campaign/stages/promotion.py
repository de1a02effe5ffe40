"""Which configurations are measured on more hosts, where a winner is to hold on several.

Most configurations are no good, and one host tells. Of those that were measured on so many hosts, the best
third goes on to more: 1 → 3 → all. That is asynchronous successive halving (Li et al., "A system for
massively parallel hyperparameter tuning", MLSys 2020), with hosts for the budget, as TUNA has it
(arXiv 2503.01801).
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from tuner.campaign.experiment import Experiment
from tuner.campaign.stages.shortlist import better
from tuner.ports import Config
from tuner.records import State, Trial
from tuner.statistics.ranking import config_key

FEW_HOSTS = 3
PROMOTED = 3
"""One of so many goes on."""


def find_promotion(experiment: Experiment) -> Config | None:
    """Return the best configuration that is worth a trial on this host, where it was not measured yet."""
    hosts = experiment.hosts
    if hosts is None:
        return None
    seen, promising = list_seen(experiment), better(experiment)
    steps = sorted({1, min(FEW_HOSTS, len(hosts.names)), len(hosts.names)})
    for least, wanted in reversed([*pairwise(steps)]):
        reached = sum(len(on) >= least for on in seen.values())
        best = [entry for entry in promising if len(seen.get(entry.key, ())) >= least]
        for entry in best[: reached // PROMOTED]:
            on = seen[entry.key]
            if len(on) < wanted and experiment.host not in on:
                return entry.config
    return None


def find_unmet(experiment: Experiment, configs: Sequence[Config]) -> Config | None:
    """Return the first of some configurations that was not measured on this host; None where all were.

    None as well where the winner need not hold on several.
    """
    if experiment.hosts is None:
        return None
    seen = list_seen(experiment)
    return next((each for each in configs if experiment.host not in seen.get(config_key(each), ())), None)


def list_seen(experiment: Experiment) -> Mapping[str, Collection[str]]:
    """Return on which hosts configurations were measured, or are being measured: key → hosts."""
    seen: dict[str, set[str]] = {}
    for trial in (*experiment.trials, *experiment.pending):
        if _tells(trial):
            seen.setdefault(config_key(trial.config), set()).add(trial.host)
    seen.pop(config_key(experiment.default), None)
    return seen


def _tells(trial: Trial) -> bool:
    return trial.role.is_under_study_load and trial.state is not State.INVALID
