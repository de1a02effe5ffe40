"""Tables and intervals of the campaign benchmark: each file of results against the first."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from benchmarks.campaign.play import ALLOWED, Played

Results = tuple[str, Sequence[Played]]
DRAWS = 10_000
OURS, BLIND, HONEST = "ours", "ours-without-hints", "ours-without-liars"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A ratio of mean gains, with its 95 % interval."""

    seen: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.seen:.3f} [{self.low:.3f}, {self.high:.3f}]"


def ratio_of_means(mine: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Return the ratio of two means over the same servers, and the bootstrap interval paired over servers."""
    above, below = np.asarray(mine), np.asarray(theirs)
    rows = np.random.default_rng(1).integers(len(above), size=(DRAWS, len(above)))
    drawn = above[rows].mean(axis=1) / below[rows].mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Ratio(seen=float(above.mean() / below.mean()), low=float(low), high=float(high))


def interval_of_share(count: int, of: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Clopper & Pearson 1934)."""
    low = float(beta.ppf(0.025, count, of - count + 1)) if count else 0.0
    return low, float(beta.ppf(0.975, count + 1, of - count)) if count < of else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A number to reach."""

    name: str
    arm: str
    seen: float
    bound: float
    sign: Literal["≥", "≤", ">"]
    interval: tuple[float, float] | None = None

    @property
    def is_met(self) -> bool:
        if self.sign == "≤":
            return self.seen <= self.bound
        return self.seen > self.bound or (self.sign == "≥" and self.seen == self.bound)

    def __str__(self) -> str:
        mark = "ok" if self.is_met else "MISSED"
        around = f" [{self.interval[0]:.3f}, {self.interval[1]:.3f}]" if self.interval else ""
        seen, wanted = f"{self.seen:.3f}{around}", f"{self.sign} {self.bound:.3g}"
        return f"| {mark} | {self.arm} | {self.name} | {seen} | {wanted} |"


def compare(files: Sequence[Results]) -> int:
    """Print what each file has, each against the first, and the numbers to reach; 1 where one is missed."""
    drawn = [(name, [each for each in played if each.kind == "drawn"]) for name, played in files]
    drawn = [(name, played) for name, played in drawn if played]
    idle = [(name, [each for each in played if each.kind == "idle"]) for name, played in files]
    idle = [(name, played) for name, played in idle if played]
    if drawn:
        _print_shares(drawn)
        _print_gains(drawn)
    targets = [*_against(drawn), *(target for each in drawn for target in _alone(*each))]
    targets += [_false_claims(*each) for each in idle]
    print("\n| | arm | number | seen | wanted |\n|---|---|---|---|---|")
    print("\n".join(map(str, targets)))
    return int(any(not target.is_met for target in targets))


# Tables

COLUMNS: Mapping[str, Callable[[Sequence[Played]], str]] = {
    "servers": lambda played: str(len(played)),
    "mean gain": lambda played: f"{_mean(played, _gain):.3f}",
    "of the best": lambda played: f"{_mean(played, _gain) / _mean(played, _best):.0%}",
    "10th, 50th percentile": lambda played: " ".join(f"{_percentile(played, p):.3f}" for p in (10, 50)),
    "claimed": lambda played: f"{_mean(played, lambda each: each.claimed):.0%}",
    "searched": lambda played: f"{_mean(played, lambda each: each.searched):.1f}",
    "starts": lambda played: f"{_mean(played, lambda each: each.starts):.0f}",
    "pairs": lambda played: f"{_mean(_with_pairs(played), lambda each: each.pairs):.1f}",
    "half-width": lambda played: f"{_mean(_with_pairs(played), lambda each: each.half_width or 0.0):.3f}",
    "seconds": lambda played: f"{_mean(played, lambda each: each.seconds):.0f}",
    "CPU s": lambda played: f"{_mean(played, lambda each: each.cpu_s):.1f}",
}
OF_WHAT_SHIPS: Mapping[str, Callable[[Sequence[Played]], str]] = {
    "claims": lambda played: str(len(_claims(played))),
    "changes": lambda played: f"{_mean(_claims(played), lambda each: each.changes):.1f}",
    "lines": lambda played: f"{_mean(_claims(played), lambda each: each.lines):.1f}",
    "idle changes": lambda played: f"{_mean(_claims(played), lambda each: each.idle):.2f}",
    "kept of the finalist": lambda played: f"{_kept(played):.1%}",
    "infeasible": lambda played: str(sum(each.infeasible for each in _claims(played))),
    "less capacity": lambda played: str(sum(each.less_capacity for each in _claims(played))),
    "worse than the default": lambda played: str(sum(each.gain < 0 for each in _claims(played))),
}


def _print_shares(files: Sequence[Results]) -> None:
    for columns in (COLUMNS, OF_WHAT_SHIPS):
        print(f"\n| arm | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}")
        for name, played in files:
            print(f"| {name} | {' | '.join(column(played) for column in columns.values())} |")


def _print_gains(files: Sequence[Results]) -> None:
    """Print mean gains by family, and apart where the default itself fails more requests than allowed."""
    groups: dict[str, Callable[[Played], bool]] = {
        "default fails too much": lambda each: each.default_rate > ALLOWED,
        "default does not": lambda each: each.default_rate <= ALLOWED,
    }
    for family in dict.fromkeys(each.family for _, played in files for each in played):
        groups[family] = partial(_is_of, family)
    print(f"\n| mean gain of the best | {' | '.join(groups)} |\n|{'---|' * (len(groups) + 1)}")
    for name, played in files:
        chosen = ([each for each in played if is_in(each)] for is_in in groups.values())
        cells = (f"{_mean(each, _gain):.3f} of {_mean(each, _best):.3f}" for each in chosen)
        print(f"| {name} | {' | '.join(cells)} |")


def _is_of(family: str, played: Played) -> bool:
    return played.family == family


# Numbers to reach


def paired(mine: Sequence[Played], theirs: Sequence[Played]) -> tuple[list[float], list[float]]:
    """Return the gains on the servers that both have, in the same order.

    Raises ValueError where a server's truth differs: then something else was drawn.
    """
    others = {each.server: each for each in theirs}
    both = [(each, others[each.server]) for each in mine if each.server in others]
    for one, other in both:
        if one.truth != other.truth:
            raise ValueError(f"server {one.server} is not the same in both files. Play one of them again.")
    return [one.gain for one, _ in both], [other.gain for _, other in both]


def _against(files: Sequence[Results]) -> list[Target]:
    """Hold our arms against the first file, and ours against its peers."""
    wanted = {OURS: 1.3, BLIND: 1.15}
    found = []
    by_arm = {_arm(played): (name, played) for name, played in files[1:]}
    for arm, (name, played) in by_arm.items():
        mine, theirs = paired(played, files[0][1])
        ratio = ratio_of_means(mine, theirs)
        if arm in wanted:
            found.append(_ratio_target(f"mean gain, as a ratio to {files[0][0]}'s", name, ratio, wanted[arm]))
        else:
            print(f"\n{name}: mean gain {ratio} of {files[0][0]}'s")
        if arm == OURS:
            tenth = float(np.percentile(theirs, 10))
            found.append(Target(
                name=f"10th percentile of the gain, against {files[0][0]}'s", arm=name,
                seen=float(np.percentile(mine, 10)), bound=tenth, sign=">",
            ))  # fmt: skip
    return found + _against_peers(by_arm)


def _against_peers(by_arm: Mapping[str, Results]) -> list[Target]:
    if OURS not in by_arm:
        return []
    name, ours = by_arm[OURS]
    found = []
    for arm, (other, played) in by_arm.items():
        if arm.startswith(f"{OURS}, ") or arm == HONEST:
            ratio = ratio_of_means(*paired(ours, played))
            bound = 0.95 if arm == HONEST else 1.15
            found.append(_ratio_target(f"mean gain, as a ratio to {other}'s", name, ratio, bound))
    return found


def _ratio_target(name: str, arm: str, ratio: Ratio, bound: float) -> Target:
    interval = (ratio.low, ratio.high)
    return Target(name=name, arm=arm, seen=ratio.seen, bound=bound, sign="≥", interval=interval)


def _alone(name: str, played: Sequence[Played]) -> list[Target]:
    claims = _claims(played)
    infeasible = sum(each.infeasible for each in claims)
    low, high = interval_of_share(infeasible, max(1, len(claims)))
    return [
        Target(
            name="changes worth less than 0.5 %, a study", arm=name,
            seen=_mean(played, lambda each: each.idle), bound=0.3, sign="≤",
        ),
        Target(
            name="of the finalist's gain kept", arm=name, seen=_kept(played), bound=0.97, sign="≥"
        ),
        Target(
            name="share of winners that truly fail too much", arm=name,
            seen=infeasible / max(1, len(claims)), bound=0.02, sign="≤", interval=(low, high),
        ),
        Target(
            name="winners with less capacity", arm=name,
            seen=sum(each.less_capacity for each in claims), bound=0, sign="≤",
        ),
    ]  # fmt: skip


def _false_claims(name: str, played: Sequence[Played]) -> Target:
    claims = len(_claims(played))
    low, high = interval_of_share(claims, len(played))
    return Target(
        name=f"claims where nothing acts, of {len(played)}", arm=name,
        seen=claims / len(played), bound=0.025, sign="≤", interval=(low, high),
    )  # fmt: skip


# Sums


def _arm(played: Sequence[Played]) -> str:
    return played[0].arm


def _gain(played: Played) -> float:
    return played.gain


def _best(played: Played) -> float:
    return played.best


def _mean(played: Sequence[Played], of: Callable[[Played], float]) -> float:
    return statistics.fmean(map(of, played)) if played else 0.0


def _percentile(played: Sequence[Played], percent: float) -> float:
    gains: NDArray[np.float64] = np.asarray([each.gain for each in played])
    return float(np.percentile(gains, percent))


def _claims(played: Sequence[Played]) -> list[Played]:
    return [each for each in played if each.claimed]


def _with_pairs(played: Sequence[Played]) -> list[Played]:
    return [each for each in played if each.half_width is not None]


def _kept(played: Sequence[Played]) -> float:
    """Return the share of the finalists' true gain that is left after the ablation, over all claims."""
    both = [each for each in _claims(played) if each.finalist is not None]
    whole = sum(each.finalist or 0.0 for each in both)
    return sum(each.gain for each in both) / whole if whole else 1.0
