"""Plays one study of a drawn server, explains it, and sets what the server truly has beside every figure."""

import math
import pickle
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.campaign.play import Arm, run
from benchmarks.campaign.servers import Server, draw_server
from tuner.campaign.experiment import Experiment
from tuner.campaign.stages.confirm import read_gain
from tuner.explain.coalitions import weigh_coalitions
from tuner.explain.explanation import Effect, Explanation, Other, Tolerance
from tuner.explain.responses import searched
from tuner.explain.study import explain
from tuner.explain.variation import is_allowed, keep_settings, list_changes, list_values, vary
from tuner.ports import Config, Scalar
from tuner.records import Trial
from tuner.space import Space
from tuner.statistics.confirmation.paired_gain import Gain
from tuner.statistics.ranking import rank
from tuner.study.facts import CONFIRMATION

NO_TRIAL = -3.0
"""Log goodput that stands for a server that does not start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One study explained: every row has what was said and what is true, in log points."""

    server: int
    truth: str
    """Fingerprint of the server."""
    confirmed: bool
    cpu_s: float
    """Of the explanation alone."""
    gain: dict[str, Any]
    lines: list[dict[str, Any]] = field(default_factory=list)
    others: list[dict[str, Any]] = field(default_factory=list)
    tolerances: list[dict[str, Any]] = field(default_factory=list)
    interactions: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a study left behind: all that an explanation is made of."""

    space: Space
    trials: tuple[Trial, ...]
    config: Config
    gain: Gain | None


def judge(number: int, keep: Path | None = None) -> Judged:
    """Play one study, or take its trials from a folder, and explain it; the same number gives the same."""
    server = draw_server(number)
    measured = _recall(server, keep) or _measure(server, keep)
    cpu_s = time.process_time()
    found = explain(
        measured.space, measured.trials, measured.config, metric="goodput_rps", gain=measured.gain, seed=1
    )
    cpu_s = time.process_time() - cpu_s
    return _judge(server, measured, found, round(cpu_s, 3))


def _measure(server: Server, keep: Path | None) -> Measured:
    experiment, _, _ = run(server, Arm(name="ours"))
    measured = _gather(experiment)
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        kept = (measured.trials, measured.config, measured.gain)
        _path(server, keep).write_bytes(pickle.dumps(kept))
    return measured


def _gather(experiment: Experiment) -> Measured:
    """Return the study as `tuner explain` sees it: the winner, else the best so far."""
    storage, setup = experiment.storage, experiment.setup
    trials, constraints = storage.trials(), setup.settings.constraints
    gain = read_gain(storage, trials, experiment.default, constraints)
    planned = storage.recall(CONFIRMATION)
    best = rank(setup.space, trials, constraints).incumbent
    config = planned.config if planned and gain else best.config if best else experiment.default
    return Measured(space=setup.space, trials=trials, config=config, gain=gain)


def _recall(server: Server, keep: Path | None) -> Measured | None:
    if keep is None or not _path(server, keep).exists():
        return None
    from benchmarks.campaign.spaces import load_family

    trials, config, gain = pickle.loads(_path(server, keep).read_bytes())  # noqa: S301 - our own file
    return Measured(space=load_family(server.family), trials=trials, config=config, gain=gain)


def _path(server: Server, keep: Path) -> Path:
    return keep / f"{server.number}-{server.fingerprint}.pickle"


def _judge(server: Server, measured: Measured, found: Explanation, cpu_s: float) -> Judged:
    space, config = measured.space, measured.config
    truth = _Truth(server, space, config)
    return Judged(
        server=server.number,
        truth=server.fingerprint,
        confirmed=measured.gain is not None and measured.gain.verdict == "improved",
        cpu_s=cpu_s,
        gain=_row(found.gain, truth.gain),
        lines=[
            {
                "name": setting.parameter,
                "finding": setting.finding.value,
                "chance": setting.chance,
                "bound": setting.bound,
                "worth": _row(setting.effect, truth.shares[setting.parameter]),
                "alone": _row(setting.if_reverted, truth.alone(setting.parameter)),
                "most": truth.most(setting.parameter),
            }
            for setting in found.settings
        ],
        others=[
            {
                "name": each.parameter,
                "finding": each.finding.value,
                "bound": each.bound,
                "effect": truth.row(each),
                "best": max(truth.effects(each.parameter), default=0.0),
                "most": truth.most(each.parameter),
            }
            for each in found.others
        ],
        tolerances=[truth.judge_tolerance(each) for each in found.tolerances],
        interactions=[
            {"names": each.parameters, **_row(each.effect, truth.interaction(*each.parameters))}
            for each in found.interactions
        ],
    )  # fmt: skip


def _row(effect: Effect | None, truth: float) -> dict[str, float]:
    if effect is None:
        return {"truth": truth}
    return {"truth": truth, "mean": effect.log, "low": math.log(effect.low), "high": math.log(effect.high)}


class _Truth:
    """What the server has around one configuration."""

    def __init__(self, server: Server, space: Space, config: Config) -> None:
        self._server, self._space, self._config = server, space, config
        self._changes = list_changes(space, config)
        self._searched = set(searched(space))
        self._effects: dict[str, list[float]] = {}
        self.gain = self._of(config) - self._of(space.default())
        self.shares = self._split()

    def _of(self, config: Config) -> float:
        return NO_TRIAL if self._server.fault(config) else self._server.truth(config)

    def _part(self, names: frozenset[str]) -> Config:
        return keep_settings(self._space, self._changes, names)

    def _split(self) -> Mapping[str, float]:
        names = sorted(self._changes)
        parts, weights = weigh_coalitions(names, lambda part: is_allowed(self._space, self._part(part)))
        goodputs = [self._of(self._part(part)) for part in parts]
        return {name: float(row @ goodputs) for name, row in zip(names, weights, strict=True)}

    def alone(self, name: str) -> float:
        rest = self._part(frozenset(self._changes) - {name})
        return self._of(self._config) - self._of(rest) if is_allowed(self._space, rest) else self.shares[name]

    def interaction(self, one: str, other: str) -> float:
        every = frozenset(self._changes)
        corners = ((1, ()), (-1, (one,)), (-1, (other,)), (1, (one, other)))
        return sum(sign * self._of(self._part(every - set(left_out))) for sign, left_out in corners)

    def effect(self, name: str, value: Scalar | None) -> float | None:
        varied = None if value is None else vary(self._space, self._changes, name, value)
        return None if varied is None else self._of(varied) - self._of(self._config)

    def row(self, other: Other) -> dict[str, float] | None:
        truth = self.effect(other.parameter, other.value)
        return None if truth is None or other.effect is None else _row(other.effect, truth)

    def effects(self, name: str) -> list[float]:
        """Return what the values of a parameter would give; none where it is not searched, or is off."""
        if name not in self._searched or name not in self._config:
            return []
        if name not in self._effects:
            values = list_values(self._space, self._config, name).every
            known = [self.effect(name, value) for value in values]
            self._effects[name] = [effect for effect in known if effect is not None]
        return self._effects[name]

    def most(self, name: str) -> float:
        return max(map(abs, self.effects(name)), default=0.0)

    def judge_tolerance(self, tolerance: Tolerance) -> dict[str, Any]:
        """Return the true losses at the ends of a range, and the most within it."""
        name = tolerance.parameter
        within = [
            value
            for value in list_values(self._space, self._config, name).numbers
            if tolerance.low <= value <= tolerance.high  # type: ignore[operator]
        ]
        losses = [-effect for value in within if (effect := self.effect(name, value)) is not None]
        ends = [self.effect(name, end) for end in (tolerance.low, tolerance.high)]
        return {
            "name": name,
            "promise": -math.log1p(-tolerance.loss),
            "ends": [-effect for effect in ends if effect is not None],
            "worst": max(losses, default=0.0),
            "is_line": name in self._changes,
        }
