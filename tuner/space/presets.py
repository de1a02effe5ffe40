"""Fits presets to the host: what is not there or not tuned is dropped with a reason."""

from dataclasses import replace

from tuner.ports import Scalar
from tuner.space.parameters import Parameter, Preset
from tuner.space.problems import problem, suggest
from tuner.space.reading import Reader
from tuner.space.rules import Scope
from tuner.space.sources import Draft, Merged
from tuner.space.space import Space
from tuner.space.values import fault_in_range, fit_number


def with_presets(space: Space, merged: Merged, reader: Reader, *, free: Space | None = None) -> Space:
    """Return the space with the presets that fit.

    Those of the space without a guard, `free`, that hold less than the default and do not adapt are refused.
    """
    presets, refused = _fit_presets(space, merged, reader)
    for preset in free.presets if free else ():
        lacks = free.lacks(free.complete(preset.values)) if free else ()
        fitted = next((each for each in presets if each.name == preset.name), None)
        if lacks and not (fitted and fitted.adjusted.keys() == preset.adjusted.keys()):
            presets = [each for each in presets if each is not fitted]
            refused[f"preset {preset.name}"] = f"{lacks[0]}; `tuner compare` still accepts this preset"
    return replace(space, presets=tuple(presets), left_out={**space.left_out, **refused})


def _fit_presets(space: Space, merged: Merged, reader: Reader) -> tuple[list[Preset], dict[str, str]]:
    """Return the presets as they are on this host, and those that cannot be tried with the reason.

    Raises UsageError for an unknown name and for a value that is wrong on every host.
    """
    presets: list[Preset] = []
    refused: dict[str, str] = {}
    names = [name for _, name in merged.presets]
    for (space_name, name), draft in merged.presets.items():
        shown = name if names.count(name) == 1 or not space_name else f"{space_name}: {name}"
        preset = _fit(space, merged, reader, draft, shown)
        broken = space.rules.broken(space.complete(preset.values, fit=True))
        if broken:
            refused[f"preset {shown}"] = broken[0]
        elif draft.fields["values"] and not preset.values:
            reasons = "; ".join(f"{name}: {why}" for name, why in preset.adjusted.items())
            refused[f"preset {shown}"] = f"none of its settings is tuned ({reasons})"
        else:
            presets.append(preset)
    return presets, refused


def _fit(space: Space, merged: Merged, reader: Reader, draft: Draft, shown: str) -> Preset:
    parameters = {parameter.name: parameter for parameter in space.parameters}
    asked: dict[str, Scalar] = {}
    adjusted: dict[str, str] = {}
    for name, value in draft.fields["values"].items():
        _refuse_unknown(merged, draft, name)
        if name in merged.dead:
            adjusted[name] = merged.dead[name]
        elif name in space.left_out:
            adjusted[name] = space.left_out[name]
        elif parameters[name].pinned:
            adjusted[name] = parameters[name].pinned
        elif _has_narrowed_choices(merged, draft, parameters[name], value):
            adjusted[name] = f"{value} is no longer among its choices"
        else:
            asked[name] = reader.fact_value(parameters[name], value, draft.at("values", name))
    values = _settle(space, merged, draft, asked, adjusted)
    title, source = (draft.fields.get(key, "") for key in ("title", "source"))
    return Preset(
        name=shown, title=title, source=source, values=values, adjusted=adjusted,
        is_tried=merged.hints and draft.fields.get("try_first", True),
    )  # fmt: skip


def _refuse_unknown(merged: Merged, draft: Draft, name: str) -> None:
    place = draft.at("values", name)
    if name in merged.derived:
        value = merged.derived[name].fields["value"]
        raise problem(
            place,
            (f"you cannot set {name}, because tuner derives it as `{value}`"),
            "Set the parameters of this formula",
        )
    if name not in merged.parameters and name not in merged.dead:
        raise problem(place, f"no parameter has the name {name}", suggest(name, merged.parameters))


def _settle(
    space: Space, merged: Merged, draft: Draft, asked: dict[str, Scalar], adjusted: dict[str, str]
) -> dict[str, Scalar]:
    """Return the values that are active, pulled into bounds that depend on the host."""
    values: dict[str, Scalar] = {}

    def pick(parameter: Parameter, low: float, high: float, scope: Scope) -> Scalar | None:
        if parameter.name not in asked or not parameter.acts(scope):
            return None
        value = asked[parameter.name]
        fault = fault_in_range(parameter, value, low, high)
        if fault is not None and not isinstance(value, str):
            if _is_wrong_everywhere(merged, draft, parameter, "high" if value > high else "low"):
                raise problem(draft.at("values", parameter.name), fault.wrong, fault.remedy)
            adjusted[parameter.name] = fault.wrong
            value = fit_number(value, parameter, low, high)
        values[parameter.name] = value
        return value

    space.rules.settle(pick)
    for name in asked.keys() - values:
        adjusted[name] = "this parameter is inactive here"
    return {name: values[name] for name in asked if name in values}


def _is_wrong_everywhere(merged: Merged, draft: Draft, parameter: Parameter, key: str) -> bool:
    """Return whether a bound is a plain number in the preset's own file.

    Bounds that depend on the host, or that somebody narrowed later, leave the preset to be fitted.
    """
    written = merged.parameters[parameter.name]
    return not isinstance(written.fields[key], str) and written.at(key).source == draft.place.source


def _has_narrowed_choices(merged: Merged, draft: Draft, parameter: Parameter, value: Scalar) -> bool:
    if parameter.kind != "categorical" or str(value) in map(str, parameter.choices):
        return False
    return merged.parameters[parameter.name].at("choices").source != draft.place.source
