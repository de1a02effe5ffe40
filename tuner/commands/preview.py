"""`tuner check --plan`: what a run may change on a host with installed services."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import unified_diff
from pathlib import PurePosixPath
from typing import Any

from tuner.campaign.prepare import Setup
from tuner.deploy.managed import ManagedTarget
from tuner.errors import TrialFailed
from tuner.ports import Config, Files, Host, Scalar
from tuner.space import SAFE, Dimension, Space
from tuner.study.presets import Plan

Point = dict[str, Scalar]


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedRange:
    """One setting that is tuned, between which values."""

    name: str
    present: str
    values: str
    """From the lowest to the highest, or all there are."""
    needs: str
    """live, reload or restart."""
    risk: str
    """safe, or what the study had to allow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The largest changes that a trial may make, what is restarted, and what is left alone."""

    host: str
    ranges: tuple[TunedRange, ...]
    diffs: Mapping[str, Mapping[str, str]]
    """End of the ranges → path → unified diff against what is there."""
    services: tuple[str, ...]
    trials: int
    minutes: float
    watchdog_s: float
    refused: Mapping[str, str]
    """Setting → why no trial touches it."""

    def as_text(self, *, is_verbose: bool = False) -> str:
        """Return it as text, the files last; verbose, with each setting that no trial touches."""
        width = max((len(each.name) for each in self.ranges), default=0)
        lines = [f"a run changes on {self.host}:"]
        lines += [
            f"  {each.name:<{width}}  {each.present} now, {each.values}; {each.needs}"
            + ("" if each.risk == SAFE else f"; {each.risk}")
            for each in self.ranges
        ]
        if is_verbose:
            lines += [f"  {name}: not touched: {reason}" for name, reason in self.refused.items()]
        elif self.refused:
            lines.append(f"  {len(self.refused)} other settings are not touched (listed by -v)")
        if self.services:
            lines.append(
                f"restarts   {', '.join(self.services)}: about {self.trials} times in {self.minutes:g} min; "
                "during a restart, requests get no response. During a trial, responses come from the "
                "settings of the trial"
            )
        lines.append(
            "after the run, tuner restores and checks everything. If the run breaks off, a watchdog on the "
            f"host restores everything, at most {self.watchdog_s:g} s after the last heartbeat"
        )
        for end, diffs in self.diffs.items():
            lines.append(f"with every setting at its {end}:")
            lines += [diff.rstrip("\n") for diff in diffs.values()] or ["  (nothing would change)"]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return the same for scripts."""
        return {
            "host": self.host,
            "parameters": [asdict(each) for each in self.ranges],
            "refused": dict(self.refused),
            "restarts": {"services": list(self.services), "trials": self.trials, "minutes": self.minutes},
            "watchdog_s": self.watchdog_s,
            "diffs": {end: dict(diffs) for end, diffs in self.diffs.items()},
        }


def preview(setup: Setup, target: ManagedTarget, plan: Plan) -> Preview:
    """Compute what a run may change, without changing anything."""
    space = setup.space
    tuned = {dimension.parameter for dimension in space.dimensions}
    default = space.default()
    point = space.encode(default)
    held = {each.name: each.pinned for each in space.parameters if each.pinned and each.name not in tuned}
    window_s = plan.windows[1] * plan.window_s + plan.warmup_s
    return Preview(
        host=setup.host.name,
        ranges=tuple(_range(space, name, default, point) for name in sorted(tuned)),
        diffs={end: _diffs(target, space, end) for end in ("lowest", "highest")},
        services=tuple(service.name for service in target.services),
        trials=round(plan.minutes * 60 / (window_s + 1)),
        minutes=plan.minutes,
        watchdog_s=target.watchdog_s,
        refused={**space.left_out, **held},
    )


def _range(space: Space, name: str, default: Config, point: Point) -> TunedRange:
    """Return the values that one setting may take while the others are as they are."""
    parameter = next(each for each in space.parameters if each.name == name)
    present = default.get(name)
    own = [each for each in space.dimensions if each.parameter == name]
    ends = [
        space.decode({**point, **{each.name: _end_of(each, end) for each in own}}).get(name)
        for end in ("lowest", "highest")
    ]
    shown = [space.show(name, value) for value in ends if value is not None] or [
        "active only with certain values of other settings"
    ]
    if parameter.is_numeric:
        values = " to ".join(dict.fromkeys(shown)) + "".join(f", or {label}" for label in parameter.special)
    else:
        values = "one of " + ", ".join(space.show(name, choice) for choice in parameter.choices)
    return TunedRange(
        name=name, present="not active" if present is None else space.show(name, present), values=values,
        needs=space.apply_of(name), risk=parameter.risk,
    )  # fmt: skip


def _end_of(dimension: Dimension, end: str) -> Scalar:
    if dimension.kind == "categorical":
        # Of "a number or a special value", the number; of plain choices, the first and the last.
        return dimension.choices[0 if end == "lowest" or dimension.name != dimension.parameter else -1]
    low, high = dimension.low, dimension.high
    value = low if end == "lowest" else high
    return int(value) if dimension.kind == "int" else value


def _diffs(target: ManagedTarget, space: Space, end: str) -> dict[str, str]:
    config = space.decode({each.name: _end_of(each, end) for each in space.dimensions})
    return diff_files(target.host, _files(target, config))


def diff_files(host: Host, files: Files) -> dict[str, str]:
    """Return path → unified diff of what is there and what is to be written."""
    look = host.look(tuple(files))
    return {str(path): _diff(path, look.read(path).content, after) for path, after in files.items()}


def _files(target: ManagedTarget, config: Config) -> Files:
    """Return what a configuration would write; nothing where it would be refused before that."""
    try:
        return target.files(config)
    except TrialFailed:
        return {}


def _diff(path: PurePosixPath, before: bytes | None, after: bytes) -> str:
    source = str(path) if before is not None else "/dev/null"
    lines = unified_diff(_lines(before), _lines(after), fromfile=source, tofile=str(path), lineterm="", n=1)
    return "".join(f"{line}\n" for line in lines)


def _lines(content: bytes | None) -> Sequence[str]:
    return (content or b"").decode(errors="replace").splitlines()
