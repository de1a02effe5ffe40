"""The tables of a contest: a row for each entrant, for people, Markdown and scripts."""

from typing import Any

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tuner.ports import ConnectTime
from tuner.report.contest import Contest
from tuner.report.contest.wording import list_claims, list_remarks, name_leader, say_effort, say_intervals
from tuner.report.figures.drawn_rows import LEAST_BAR, MOST_BAR, DrawnRows, draw_estimates, shorten
from tuner.report.summary_json import arm_json
from tuner.report.tables import escape_markdown, join_markdown, markdown_list, markdown_table, write_arms_csv
from tuner.report.wording import (
    NOTHING,
    make_printable,
    say_estimate,
    say_failures,
    say_milliseconds,
    say_rate,
    say_ratio,
)
from tuner.statistics.response_curve import Estimate

SIDES = ("requests/s", "p99", "CPU/request", "failures", "trials")


def entrant_columns(contest: Contest) -> tuple[str, ...]:
    """Return the titles of what is known of each entrant; connect times where a generator says them."""
    is_timed = any(arm.connect_time is not None for arm in contest.arms)
    return (*SIDES, "connecting, min / mean / max") if is_timed else SIDES


def entrant_rows(contest: Contest) -> list[tuple[str, ...]]:
    """Return a row for each entrant, in the order of `entrant_columns`."""
    rows = []
    for arm, cpu_us in zip(contest.arms, contest.cpu_us, strict=True):
        row = (
            f"≥ {say_rate(arm.goodput_rps)}" if arm.is_lower_bound else say_rate(arm.goodput_rps),
            say_milliseconds(arm.latency_p99_ms),
            NOTHING if cpu_us is None else f"{cpu_us:.1f} µs",
            say_failures(arm.failures, arm.requests),
            f"{arm.trials}, {arm.failed_trials} failed" if arm.failed_trials else str(arm.trials),
            _say_connect_time(arm.connect_time),
        )
        rows.append(row[: len(entrant_columns(contest))])
    return rows


def _say_connect_time(found: ConnectTime | None) -> str:
    if found is None:
        return NOTHING
    least, mean, most = map(say_milliseconds, (found.min_ms, found.mean_ms, found.max_ms))
    return f"{least.removesuffix(' ms')} / {mean.removesuffix(' ms')} / {most}"


def to_baseline(contest: Contest) -> list[Estimate | None]:
    """Return the ratio of each entrant to the first one, whose own is 1."""
    same = Estimate(ratio=1.0, low=1.0, high=1.0)
    others = [contest.pairs.estimates.get((index, 0)) for index in range(1, len(contest.arms))]
    return [same if contest.arms[0].trials else None, *others]


def say_to_baseline(contest: Contest) -> list[str]:
    """Return the same as text; nothing where there was no measurement."""
    ratios = [NOTHING if each is None else say_estimate(each) for each in to_baseline(contest)]
    return [NOTHING if ratios[0] == NOTHING else "1×", *ratios[1:]]


def pair_rows(contest: Contest) -> list[tuple[str, ...]]:
    """Return a row for each entrant: its ratio to each of them."""
    count = len(contest.arms)
    return [tuple(_say_pair(contest, over, under) for under in range(count)) for over in range(count)]


def _say_pair(contest: Contest, over: int, under: int) -> str:
    found = contest.pairs.estimates.get((over, under))
    return NOTHING if found is None else say_estimate(found)


def contest_markdown(contest: Contest) -> str:
    """Return a contest as Markdown: who leads, the table of entrants, what is claimed."""
    ratios = say_to_baseline(contest)
    head = ("", f"of {contest.labels[0]}", *entrant_columns(contest))
    rows = [
        (label, ratio, *row)
        for label, ratio, row in zip(contest.labels, ratios, entrant_rows(contest), strict=True)
    ]
    return join_markdown(
        f"**{escape_markdown(name_leader(contest))}**",
        markdown_table(head, rows, numbers=True),
        markdown_list(list_claims(contest)),
        f"{escape_markdown(contest.workload)}. {say_effort(contest)}. {say_intervals(contest)}",
        markdown_list(list_remarks(contest)),
    )


def contest_csv(contest: Contest) -> str:
    """Return a line for each entrant; ratios are those to the first one, whose own is 1."""
    arms = zip(contest.labels, to_baseline(contest), contest.arms, strict=True)
    more = {
        "cpu_us_per_request": contest.cpu_us,
        "leads": [index in contest.leaders for index in range(len(contest.arms))],
        "fault": [contest.faults.get(index) for index in range(len(contest.arms))],
    }
    return write_arms_csv("configuration", list(arms), more)


def contest_json(contest: Contest) -> dict[str, Any]:
    """Return a contest as JSON values; keys are added, never renamed."""
    return {
        "studies": list(contest.plan.studies),
        "workload": contest.workload,
        "metric": contest.metric.value,
        "entrants": [_entrant_json(contest, index) for index in range(len(contest.arms))],
        "pairs": [
            {
                "over": contest.labels[over], "under": contest.labels[under], "ratio": found.ratio,
                "low": found.low, "high": found.high, "blocks": contest.pairs.blocks[over, under],
            }
            for (over, under), found in contest.pairs.estimates.items()
        ],
        "confidence": 0.95,
        "correction": f"Bonferroni over {contest.pairs.planned} pairs",
        "leaders": [contest.labels[each] for each in contest.leaders],
        "headline": name_leader(contest),
        "claims": list_claims(contest),
        "remarks": list_remarks(contest),
        "blocks": contest.blocks,
        "trials": contest.trials,
        "seconds": round(contest.seconds, 1),
    }  # fmt: skip


def _entrant_json(contest: Contest, index: int) -> dict[str, Any]:
    entrant, arm = contest.plan.entrants[index], contest.arms[index]
    return {
        "label": contest.labels[index],
        "study": entrant.study,
        "name": entrant.name,
        **arm_json(arm),
        "is_lower_bound": arm.is_lower_bound,
        "cpu_us_per_request": contest.cpu_us[index],
        "fault": contest.faults.get(index),
        "notes": list(entrant.notes),
        "changes": {
            name: {"default": default, "value": value}
            for name, (default, value) in contest.changes(index).items()
        },
    }


LEADS, FOLLOWS = "◆", "●"
LONGEST_LABEL = 28


def contest_screen(contest: Contest) -> Group:
    """Return who leads, the figure, what each entrant gave, and what is claimed."""
    parts: list[RenderableType] = [
        Text(make_printable(name_leader(contest)), style="bold"),
        Text(""),
        draw_ratios(contest),
        Text(f"{LEADS} nobody is shown to be ahead of it; told apart from its default", style="dim"),
        Text(""),
        _entrants(contest),
        Text(""),
    ]
    parts += [Text(make_printable(f"{claim}.")) for claim in list_claims(contest)]
    parts += [Text(make_printable(f"{remark}."), style="yellow") for remark in list_remarks(contest)]
    effort = f"{contest.workload}. {say_effort(contest)}. {say_intervals(contest)}"
    return Group(*parts, Text(make_printable(effort), style="dim"))


def _entrants(contest: Contest) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for index, title in enumerate(("", *SIDES)):
        table.add_column(title, justify="right" if index else "left")
    for label, row in zip(contest.labels, entrant_rows(contest), strict=True):
        table.add_row(make_printable(label), *row[: len(SIDES)])
    return table


def draw_ratios(contest: Contest) -> DrawnRows:
    """Draw the ratios to the first entrant, with their intervals as text where there is room for it."""
    estimates, whole = to_baseline(contest), say_to_baseline(contest)
    labels = ["", *(shorten(make_printable(label), LONGEST_LABEL) for label in contest.labels)]
    ratios = [say_ratio(each.ratio) if each else "" for each in estimates]
    symbols = [LEADS if index in contest.marked else FOLLOWS for index in range(len(estimates))]
    title = f"of {make_printable(contest.labels[0])}"
    return DrawnRows(
        sets=[
            [labels, [shorten(title, max(map(cell_len, said))), *said]] for said in (whole, ratios)
        ],
        draw=lambda columns: draw_estimates(estimates, symbols, columns),
        styles=[
            "bold green" if index in contest.marked else "yellow" if index in contest.faults else ""
            for index in range(len(estimates))
        ],
        least=LEAST_BAR, most=MOST_BAR, left=0,
    )  # fmt: skip
