"""Conclusions from an explanation: a few sentences to act on, the most important first."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tuner.explain.explanation import Effect, Explanation, Finding, Other, Proof, Setting, Tolerance
from tuner.report.wording import say_duration, say_estimate, say_percent

if TYPE_CHECKING:
    from tuner.ports import Config
    from tuner.space import Space

NAMES_AT_MOST = 6
TENDENCY = 0.8
"""Chance from which on a setting that is not shown to help is said to be likely to."""


def conclude(
    space: "Space", found: Explanation, reason: str = "", *, is_shipped: bool = True,
    rejected: "Sequence[Config]" = (),
) -> Explanation:  # fmt: skip
    """Return an explanation with its sentences.

    Args:
        space: of the study.
        found: what is explained.
        reason: why nothing is proven; empty when something is.
        is_shipped: whether what is explained may be used; else nobody is told to keep its settings.
        rejected: configurations that were better and must not be used.
    """
    if found.gain is None or found.gain.low <= 1:  # there is no gain to keep, and none below 1 to prove
        is_better = found.proof is not None and found.proof.expected.ratio > 1
        found = replace(found, tolerances=(), proof=found.proof if is_better else None)
    proof = found.proof and replace(found.proof, sentence=say_proof(found.proof, found.trials))
    said = [*_say_settings(space, found.settings, found.gain, is_shipped=is_shipped)]
    said += [_say_tolerance(space, each) for each in found.tolerances]
    said += [
        f"{_name(each.parameters)} {'help' if each.effect.ratio > 1 else 'hinder'} each other: together they "
        f"give {say_estimate(each.effect)} of the product of their separate effects."
        for each in found.interactions
    ]
    said += [*_say_others(space, found.others, {name for each in rejected for name in space.changes(each)})]
    first = [reason, proof.sentence if proof is not None else ""]
    said = [*(each for each in first if each), *said]
    return replace(found, conclusions=tuple(said), proof=proof)


def say_proof(proof: Proof, trials: int) -> str:
    """Write what would prove a gain."""
    expected = f"{trials} trials predict {say_estimate(proof.expected)} of the default"
    noise = f"the ratio of a pair scatters by {say_percent(proof.noise, 0)} on this host"
    if proof.pairs is None:
        return f"{expected}; {noise}, so no affordable number of pairs is likely to prove it."
    time = f" (about {say_duration(proof.seconds)})" if proof.seconds else ""
    return f"{expected}. If so, {proof.pairs} fresh pairs{time} would prove it in 9 of 10 cases: {noise}."


def _say_settings(
    space: "Space", settings: Sequence[Setting], gain: Effect | None, *, is_shipped: bool
) -> Iterator[str]:
    of = {finding: [setting for setting in settings if setting.finding is finding] for finding in Finding}
    if helping := of[Finding.HELPS]:
        share = sum(setting.effect.log for setting in helping) / gain.log if gain and gain.log > 0 else 0.0
        of_gain, names = say_percent(min(share, 1.0), 0), _name_settings(space, helping)
        if is_shipped:
            yield f"Keep {names}{f': {of_gain} of the gain' * (share > 0)}."
        else:
            yield f"The gain comes from {names}{f': {of_gain} of it' * (share > 0)}."
    elif len(settings) > 1 and gain is not None and gain.low > 1:
        yield (
            "Too little data to attribute the gain: its settings were mostly tried together. "
            "A new study with a longer preset tells more."
        )
    if idle := [*of[Finding.NO_EFFECT], *of[Finding.CANNOT_ACT]]:
        names = _name([each.parameter for each in idle])
        no_effect = f"{'has' if len(idle) == 1 else 'have'} no effect"
        yield f"{names} {'may go back to the default without a loss' if is_shipped else no_effect}."
    if harmful := of[Finding.HARMFUL]:
        names = _name([setting.parameter for setting in harmful])
        they = "it" if len(harmful) == 1 else "them"
        if is_shipped:
            yield f"Revert {names}: the other settings are faster without {they}."
        else:
            yield f"{names} {'makes' if len(harmful) == 1 else 'make'} the server slower."
    likely = [setting for setting in of[Finding.UNKNOWN] if setting.chance >= TENDENCY]
    open_ones = [setting for setting in of[Finding.UNKNOWN] if setting.chance < TENDENCY]
    if helping and likely:
        yield f"Likely to help, but not proven: {_name([setting.parameter for setting in likely])}."
    if helping and open_ones:
        yield f"Not known to help: {_name([setting.parameter for setting in open_ones])}."


def _say_tolerance(space: "Space", each: Tolerance) -> str:
    name = each.parameter
    low, high = space.show(name, each.low), space.show(name, each.high)
    return (
        f"{name} may be anything from {low} to {high}: that keeps the gain within {say_percent(each.loss)}."
    )


def _say_others(space: "Space", others: Sequence[Other], rejected: Collection[str]) -> Iterator[str]:
    for each in others:
        if each.value is None or each.effect is None:
            continue
        value = space.show(each.parameter, each.value)
        if each.finding is Finding.HELPS and each.parameter in rejected:
            estimate = say_estimate(each.effect)
            yield f"{each.parameter} {value} gives {estimate}, but a candidate with it was rejected."
        elif each.finding is Finding.HELPS:
            yield f"Try {each.parameter} {value} as well: {say_estimate(each.effect)}."
        if each.finding is Finding.HARMFUL:
            yield f"Leave {each.parameter} as it is: {value} gives {say_estimate(each.effect)}."


def _name_settings(space: "Space", settings: Sequence[Setting]) -> str:
    return _name([f"{each.parameter} {space.show(each.parameter, each.value)}" for each in settings])


def _name(names: Sequence[str]) -> str:
    """Write names as a list: a, b and c; of many, the first few."""
    if len(names) > NAMES_AT_MOST:
        names = [*names[:NAMES_AT_MOST], f"{len(names) - NAMES_AT_MOST} more"]
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
