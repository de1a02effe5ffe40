"""Figures of what is explained: the effect of each setting as a waterfall, what other settings would do."""

from collections.abc import Sequence

from tuner.explain.explanation import Effect, Explanation, Finding, Other, Setting
from tuner.ports import Scalar
from tuner.report.figures.axes import Axis, ratio_axis, ratio_labels
from tuner.report.figures.drawing import BARS_PX, Bar, BarChart
from tuner.report.wording import NOTHING, say_estimate, say_percent
from tuner.space import Space

TONES = {Finding.HELPS: "good", Finding.HARMFUL: "bad"}
"""Colours of findings; grey for what is not shown to do anything."""
FAINT = "edge"
EFFECTS_CAPTION = (
    "Each bar begins where the one before ends: in logarithms the effects of the settings add up to the "
    "gain. By one model of all trials, with 95 % intervals; grey bars are not shown to help. Effect if "
    "reverted: what a setting adds when all others are in place."
)


def draw_effects(space: Space, found: Explanation) -> BarChart | None:
    """Draw the settings from the default to the configuration that is explained."""
    gain = found.gain
    if gain is None or not found.settings:
        return None
    steps = _climb(found.settings)
    axis = ratio_axis(
        [gain.low, gain.high, *(before * end for before, setting in steps for end in _ends(setting.effect))]
    )
    bars = [_draw_setting(space, setting, before, axis) for before, setting in steps]
    all_of_them = Bar(
        label="together", cells=(say_estimate(gain), "", ""), tone="ink", begin=axis.percent(1),
        end=axis.percent(gain.ratio), low=axis.percent(gain.low), high=axis.percent(gain.high),
    )  # fmt: skip
    return BarChart(
        name="effects", title="Effect per setting",
        columns=("setting", "effect", "effect if reverted", "finding"),
        caption=EFFECTS_CAPTION, bars=(*bars, all_of_them), origin=axis.percent(1),
        labels=ratio_labels(axis, length_px=BARS_PX), numbers=2,
    )  # fmt: skip


def _climb(settings: Sequence[Setting]) -> list[tuple[float, Setting]]:
    """Return what all settings before each one give together, with the setting."""
    steps, level = [], 1.0
    for setting in settings:
        steps.append((level, setting))
        level *= setting.effect.ratio
    return steps


def _ends(effect: Effect) -> tuple[float, float, float]:
    return effect.low, effect.ratio, effect.high


def _draw_setting(space: Space, setting: Setting, before: float, axis: Axis) -> Bar:
    """Draw one setting of the waterfall, with what is known of it in words."""
    low, end, high = (axis.percent(before * ratio) for ratio in _ends(setting.effect))
    moved = "; ".join(each.sentence for each in setting.mechanisms)
    told = say_finding(setting) + (f". With it: {moved}" if moved else "")
    return Bar(
        label=setting.parameter, detail=_change(space, setting.parameter, setting.default, setting.value),
        cells=(say_estimate(setting.effect), say_estimate(setting.if_reverted), told),
        tone=TONES.get(setting.finding, FAINT), begin=axis.percent(before), end=end, low=low, high=high,
    )  # fmt: skip


def say_finding(setting: Setting) -> str:
    """Write what can be said of a setting: helps, no effect beyond ± 2 %, 93 % likely to help."""
    if setting.finding is Finding.UNKNOWN:
        return f"{say_percent(setting.chance, 0)} likely to help"
    return _say_bound(setting.finding, setting.bound)


def _say_bound(finding: Finding, bound: float | None) -> str:
    if finding is Finding.NO_EFFECT and bound is not None:
        return f"{finding.value} beyond ± {say_percent(bound)}"
    return finding.value


def _change(space: Space, name: str, default: Scalar | None, value: Scalar) -> str:
    before = NOTHING if default is None else space.show(name, default)
    return f"{before} → {space.show(name, value)}"


def draw_others(space: Space, found: Explanation) -> BarChart | None:
    """Draw what the best or the worst value of each other setting would do, where that is known."""
    told = [(each, each.effect) for each in found.others if each.effect is not None]
    if not told:
        return None
    axis = ratio_axis(end for _, effect in told for end in _ends(effect))
    return BarChart(
        name="others", title="Effect of other settings", columns=("setting", "effect", "finding"),
        caption="At the value where each helps or harms most, all else as above, with 95 % intervals.",
        bars=tuple(_draw_other(space, each, effect, axis) for each, effect in told),
        origin=axis.percent(1), labels=ratio_labels(axis, length_px=BARS_PX),
    )  # fmt: skip


def _draw_other(space: Space, other: Other, effect: Effect, axis: Axis) -> Bar:
    low, dot, high = (axis.percent(ratio) for ratio in _ends(effect))
    value = other.value
    return Bar(
        label=other.parameter, cells=(say_estimate(effect), _say_bound(other.finding, other.bound)),
        detail="" if value is None else _change(space, other.parameter, other.default, value),
        tone=TONES.get(other.finding, "grey"), dot=dot, low=low, high=high,
    )  # fmt: skip


def draw_costs(space: Space, found: Explanation) -> BarChart | None:
    """Draw what each setting does to the second objective, of which less is better."""
    beside = found.beside
    if beside is None or not beside.settings:
        return None
    axis = ratio_axis(end for setting in beside.settings for end in _ends(setting.effect))
    bars = []
    for setting in beside.settings:
        low, dot, high = (axis.percent(ratio) for ratio in _ends(setting.effect))
        change = _change(space, setting.parameter, setting.default, setting.value)
        tone = "good" if setting.effect.high < 1 else "bad" if setting.effect.low > 1 else "grey"
        bars.append(
            Bar(
                label=setting.parameter, detail=change, cells=(say_estimate(setting.effect),), tone=tone,
                dot=dot, low=low, high=high,
            )
        )  # fmt: skip
    return BarChart(
        name="costs", title=f"Effect per setting on {beside.metric}", columns=("setting", "factor"),
        caption="Less is better: left of 1× the setting saves.", bars=tuple(bars), origin=axis.percent(1),
        labels=ratio_labels(axis, length_px=BARS_PX),
    )  # fmt: skip
