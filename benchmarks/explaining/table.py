"""Counts what is true of explanations, and holds it against the numbers to reach."""

import math
import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.campaign.table import Target, interval_of_share
from benchmarks.explaining.judge import Judged

IDLE = math.log(1.005)
GREAT = math.log(1.08)
ENOUGH = 1.5
"""Times what a tolerance promises, to which the true loss at its ends may come."""
HELPS, HARMFUL, NO_EFFECT = "helps", "harmful", "no effect"
Row = dict[str, Any]


def tell(judged: Sequence[Judged]) -> int:
    """Print the numbers to reach and what they are made of; 1 where one is missed."""
    lines = [line for each in judged for line in each.lines]
    others = [other for each in judged for other in each.others]
    targets = [*_effects(lines), *_findings(lines, others), *_named(lines, others), *_tolerances(judged)]
    print(f"{len(judged)} studies, {sum(each.confirmed for each in judged)} confirmed, {len(lines)} lines, "
          f"CPU {statistics.fmean(each.cpu_s for each in judged):.2f} s each")  # fmt: skip
    print("\n| | | number | seen | wanted |\n|---|---|---|---|---|")
    print("\n".join(map(str, targets)))
    _print_more(judged, lines, others)
    return int(any(not target.is_met for target in targets))


def _share(name: str, count: int, of: int, sign: Any, bound: float) -> list[Target]:  # noqa: ANN401
    if not of:
        return []
    interval = interval_of_share(count, of)
    return [
        Target(name=name, arm=f"{count}/{of}", seen=count / of, bound=bound, sign=sign, interval=interval)
    ]


def _covers(row: Row) -> bool:
    return bool(row["low"] - 1e-9 <= row["truth"] <= row["high"] + 1e-9)


def _effects(lines: Sequence[Row]) -> list[Target]:
    covered = sum(_covers(line["worth"]) for line in lines)
    name = "95 % intervals of worth cover the truth"
    return [
        *_share(name, covered, len(lines), "≥", 0.90),
        *_share(name, covered, len(lines), "≤", 0.97),
    ]


def _findings(lines: Sequence[Row], others: Sequence[Row]) -> list[Target]:
    said = [_truth(line) for line in lines if line["finding"] == HELPS]
    said += [each["effect"]["truth"] for each in others if each["finding"] == HELPS]
    none = [(abs(line["alone"]["truth"]), line["bound"]) for line in lines if line["finding"] == NO_EFFECT]
    none += [(each["most"], each["bound"]) for each in others if each["finding"] == NO_EFFECT]
    wrong = sum(each > math.log1p(bound) for each, bound in none)
    harm = [each["effect"]["truth"] for each in others if each["finding"] == HARMFUL]
    return [
        *_share("helps, though worth < 0.5 %", sum(worth < IDLE for worth in said), len(said), "≤", 0.025),
        *_share("harmful, though < 0.5 %", sum(each > -IDLE for each in harm), len(harm), "≤", 0.025),
        *_share("no effect beyond x, wrong", wrong, len(none), "≤", 0.05),
    ]  # fmt: skip


def _truth(line: Row) -> float:
    """Return the most that a line truly gives: its share of the gain, or what putting it back costs."""
    return max(float(line["worth"]["truth"]), float(line["alone"]["truth"]))


def _named(lines: Sequence[Row], others: Sequence[Row]) -> list[Target]:
    """Return how many of the parameters that are worth much are named.

    A line is worth its share, another parameter what its best value would give.
    """
    great = [line["finding"] == HELPS for line in lines if line["worth"]["truth"] >= GREAT]
    missed = [each["finding"] == HELPS for each in others if each["best"] >= GREAT]
    return [
        *_share("lines worth ≥ 8 % that are named", sum(great), len(great), "≥", 0.8),
        *_share("all worth ≥ 8 % that are named", sum(great + missed), len(great + missed), "≥", 0.8),
    ]


def _tolerances(judged: Sequence[Judged]) -> list[Target]:
    every = [tolerance for each in judged for tolerance in each.tolerances]
    kept = [end <= ENOUGH * each["promise"] for each in every for end in each["ends"]]
    return _share("ends of tolerances lose ≤ 1.5 of the promise", sum(kept), len(kept), "≥", 0.9)


def _print_more(judged: Sequence[Judged], lines: Sequence[Row], others: Sequence[Row]) -> None:
    """Print what the numbers are made of."""
    gains = [each.gain for each in judged if "low" in each.gain]
    print(f"\ngain covered: {sum(map(_covers, gains))}/{len(gains)}")
    print(f"alone covered: {sum(_covers(line['alone']) for line in lines)}/{len(lines)}")
    active = [line["worth"] for line in lines if abs(line["worth"]["truth"]) > IDLE]
    print(f"worth of lines that act covered: {sum(map(_covers, active))}/{len(active)}")
    for name in ("worth", "alone"):
        widths = [line[name]["high"] - line[name]["low"] for line in lines]
        below = sum(line[name]["truth"] < line[name]["low"] for line in lines)
        bias = statistics.fmean(line[name]["mean"] - line[name]["truth"] for line in lines)
        print(f"{name}: median width {statistics.median(widths):.3f}, below {below}, bias {bias:+.4f}")
    interactions = [row for each in judged for row in each.interactions]
    wrong = sum(row["truth"] * row["mean"] <= 0 for row in interactions)
    print(f"interactions: {len(interactions)}, covered {sum(map(_covers, interactions))}, wrong sign {wrong}")
    for kind, rows in (("lines", lines), ("others", others)):
        counts = {each: sum(row["finding"] == each for row in rows)
                  for each in (HELPS, HARMFUL, NO_EFFECT, "unknown", "cannot act")}  # fmt: skip
        print(kind, counts)
    moving = [each for each in [*lines, *others] if each["most"] >= GREAT]
    named = sum(each["finding"] in {HELPS, HARMFUL} for each in moving)
    print(f"parameters of which a value moves ≥ 8 % either way: named {named}/{len(moving)}")
    every = [each for one in judged for each in one.tolerances]
    inside = sum(each["worst"] <= ENOUGH * each["promise"] for each in every)
    print(f"tolerances: {len(every)} ({sum(each['is_line'] for each in every)} of lines), nowhere within "
          f"more than 1.5 of the promise {inside}")  # fmt: skip
