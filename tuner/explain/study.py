"""Explains one study: what was shipped, what was not, and what would prove it."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from tuner.errors import UsageError
from tuner.explain.beliefs import Beliefs, read_effect
from tuner.explain.costs import observe_costs
from tuner.explain.effects import add_mechanisms, estimate_effects
from tuner.explain.explanation import CurvePoint, Depth, Effect, Explanation, Proof
from tuner.explain.proof import plan_proof
from tuner.explain.responses import (
    LEAST_TRIED,
    Response,
    describe_others,
    find_tolerance,
    find_tolerances,
    respond,
    respond_all,
)
from tuner.explain.variation import is_same, list_values
from tuner.ports import Config, Scalar
from tuner.records import Role, Trial
from tuner.space import Space
from tuner.space.problems import suggest
from tuner.statistics.confirmation.paired_gain import Gain


def describe_depth(
    space: Space,
    beliefs: Beliefs | None,
    trials: Sequence[Trial],
    config: Config,
    name: str,
    found: Explanation,
) -> Depth:
    """Return what is known of a parameter.

    Raises:
        UsageError: the space has no such parameter.
    """
    known = {each.name: each for each in space.parameters}
    if name not in known:
        raise UsageError(
            f"--parameter: the search space {space.name} has no parameter {name!r}. {suggest(name, known)}"
        )
    parameter = known[name]
    tried = [trial.config[name] for trial in trials if trial.counts and name in trial.config]
    values = list_values(space, config, name, tried)
    at_config, at_default = (
        respond(beliefs, trials, around, {name: values}).get(name) if beliefs is not None else None
        for around in (config, space.default())
    )
    return Depth(
        parameter=name,
        unit=parameter.unit,
        why=parameter.why,
        source=parameter.source,
        also=parameter.also,
        acts_when=parameter.acts_when.text if parameter.acts_when else "",
        acts_source=parameter.acts_source,
        curve=tuple(
            CurvePoint(
                value=value,
                at_winner=_effect_at(at_config, value),
                at_default=_effect_at(at_default, value),
                trials=sum(is_same(each, value) for each in tried),
            )
            for value in values.every
        ),
        setting=next((each for each in found.settings if each.parameter == name), None),
        other=next((each for each in found.others if each.parameter == name), None),
        tolerance=None if at_config is None else find_tolerance(at_config),
        interactions=tuple(each for each in found.interactions if name in each.parameters),
    )


def _effect_at(response: Response | None, value: Scalar) -> Effect | None:
    if response is None:
        return None
    at = next((index for index, each in enumerate(response.values) if is_same(each, value)), None)
    return None if at is None else read_effect(response.draws[:, at])


USUAL_WINDOWS = 2


def explain(
    space: Space,
    trials: Sequence[Trial],
    config: Config | None,
    *,
    metric: str,
    gain: Gain | None = None,
    cost: str | None = None,
    seed: int = 0,
) -> Explanation:
    """Explain a configuration by all trials of its study.

    Args:
        space: of the study.
        trials: all of them.
        config: the winner, else the best so far; None explains the default.
        metric: that the study maximizes, by name.
        gain: what the confirmation gave; None before it.
        cost: metric that is minimized as well.
        seed: of the draws; the same gives the same explanation.
    """
    config = config or space.default()
    if not space.dimensions:
        return Explanation(metric=metric, refusal="The study tunes no parameter.")
    beliefs = Beliefs.of(space, trials, seed=seed)
    if beliefs is None:
        return Explanation(metric=metric, refusal="The default has not been measured yet.")
    found = _explain(beliefs, trials, config, metric, gain)
    if gain is None:
        found = replace(found, proof=_plan(beliefs, found, trials, config))
    if cost is not None:
        found = replace(found, beside=_explain_cost(space, trials, config, cost, seed))
    return replace(found, is_confirmed=gain is not None)


def _explain(
    beliefs: Beliefs, trials: Sequence[Trial], config: Config, metric: str, confirmed: Gain | None = None
) -> Explanation:
    space = beliefs.space
    gain, settings, interactions = estimate_effects(beliefs, trials, config, confirmed)
    responses = respond_all(beliefs, trials, config)
    others = describe_others(space, config, responses)
    return Explanation(
        metric=metric,
        gain=gain,
        settings=add_mechanisms(settings, trials, space.default()),
        others=others,
        tolerances=find_tolerances(responses, [setting.parameter for setting in settings], others),
        interactions=interactions,
        trials=beliefs.trials,
    )


def _plan(beliefs: Beliefs, found: Explanation, trials: Sequence[Trial], config: Config) -> Proof | None:
    """Return what would prove the gain; None where nothing is changed, or too little was measured.

    Asked before the confirmation alone: afterwards its pairs say how many more would decide.
    """
    baselines = [each for each in trials if each.role is Role.BASELINE and each.counts]
    is_measured = any(dict(each.config) == dict(config) for each in trials if each.counts)
    if found.gain is None or not found.settings or not is_measured or len(baselines) < LEAST_TRIED:
        return None
    of_pairs = [each for each in trials if each.role is Role.CONFIRM and each.counts]
    counted = of_pairs or baselines
    windows = round(fmean(len(each.valid_windows) for each in counted)) if counted else USUAL_WINDOWS
    seconds = [each.timing.deploy_s + each.timing.load_s for each in counted]
    noise = beliefs.posteriors[0].seen.noise
    return plan_proof(found.gain, noise, windows=windows, pair_s=2 * fmean(seconds) if seconds else 0.0)


def _explain_cost(space: Space, trials: Sequence[Trial], config: Config, cost: str, seed: int) -> Explanation:
    seen = observe_costs(space, trials, cost)
    if seen is None:
        return Explanation(metric=cost, refusal=f"Too few trials of the default have a value of {cost}.")
    return _explain(Beliefs.about(space, seen, seed=seed), trials, config, cost)


def explain_parameter(
    space: Space,
    trials: Sequence[Trial],
    config: Config | None,
    name: str,
    found: Explanation,
    *,
    seed: int = 0,
) -> Depth:
    """Return everything that is known of one parameter, beside what explains the study.

    Raises:
        UsageError: the space has no such parameter.
    """
    beliefs = Beliefs.of(space, trials, seed=seed)
    return describe_depth(space, beliefs, trials, config or space.default(), name, found)
