"""The report: one HTML page, the same bytes for the same summary.

The first screen answers what to change, by how much, how sure, at what price, how to apply and how to undo.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tuner.records import Metric, Role, State
from tuner.report.markup import render_page
from tuner.report.rows import (
    TABLES,
    Row,
    describe_growth,
    describe_limit,
    describe_tail,
    describe_unlike_rates,
)
from tuner.report.wording import (
    NOTHING_BETTER,
    capitalize,
    say_age,
    say_change,
    say_checked,
    say_gain,
    say_metric,
    say_percent,
    say_ratio,
    say_rejection,
    say_speedup,
    say_trend,
)

if TYPE_CHECKING:
    from tuner.report.curve import Curve
    from tuner.report.figures.theme import Figure
    from tuner.report.summary import Summary
    from tuner.report.sweep import Sweep
    from tuner.statistics.age import Age
    from tuner.statistics.confirmation.paired_gain import Gain

STATES = (State.COMPLETE, State.PRUNED, State.FAILED, State.INVALID, State.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The verdict on the first screen."""

    tone: str
    """good, plain or open: chooses the colour."""
    figure: str
    text: str


def render_report(
    summary: "Summary", sweeps: "Sequence[Sweep]" = (), curves: "Sequence[Curve]" = (),
    commands: Sequence[tuple[str, str]] = (), change: str = "",
) -> str:  # fmt: skip
    """Render the page.

    Args:
        summary: the study.
        sweeps: its sweeps.
        curves: its load curves.
        commands: what applies the winner and takes it back, or measures a candidate: titles and commands.
        change: what the winner or the candidate changes in the servers' own files, to be copied; empty where
            that is not known.
    """
    from tuner.report.curve.page import list_curve_rows
    from tuner.report.fidelity import list_mixes

    age = summary.gain.age if summary.gain is not None else None
    figures, slices = draw_figures(summary, sweeps, curves)
    measured = _put_candidate(summary)
    tables = {name: rows_of(summary) for name, rows_of in TABLES.items()}
    tables |= {name: TABLES[name](measured) for name in ("sides", "capacity", "robustness")}
    return render_page(
        "page.html.j2",
        summary=summary, headline=describe_verdict(summary), found=summary.explanation,
        facts=list_facts(summary), change=colour_change(change), diff=list_changes(summary),
        worse=list_worse(measured), rates=describe_unlike_rates(measured),
        has_side=measured.winner is not None,
        trends=describe_trends(age, summary.side), tests=describe_tests(summary),
        figures=figures, slices=slices, counts=count_trials(summary),
        sweeps=[(sweep, f"sweep-{number}") for number, sweep in enumerate(sweeps)],
        curves=[
            {"verdict": curve.verdict, "rows": list_curve_rows(curve), "names": [f"curve-{number}"]}
            for number, curve in enumerate(curves)
        ],
        followers=list_followers(summary), commands=commands, mixes=list_mixes(summary.fidelity),
        contents=list_contents(tables, summary, sweeps, curves), **tables,
    )  # fmt: skip


def list_facts(summary: "Summary") -> list[str]:
    """Return load, machine, date and version, each of which stays on one line where it fits."""
    machine = summary.fingerprint
    placement = ", server and load generator on one machine" if machine.co_located else ""
    return [
        summary.workload,
        f"{machine.host}: {machine.cpu}, {machine.cores} cores{placement}",
        summary.created,
        f"tuner {summary.version}, {summary.preset}",
    ]


def _put_candidate(summary: "Summary") -> "Summary":
    """Return the summary with what was found, if anything, in the place of the winner that there is not."""
    from tuner.report.summary import as_candidate

    return summary if summary.found is None else as_candidate(summary)


def colour_change(change: str) -> list[tuple[str, str]]:
    """Return the lines of a change, each with its class: file, remark, del, ins, soft or none."""
    signs = {"-": "del", "+": "ins", "@": "soft"}
    lines: list[tuple[str, str]] = []
    is_patch = False
    # At line feeds alone, as patch does.
    for line in change.removesuffix("\n").split("\n") if change else ():
        is_patch = line.startswith("--- ") or (is_patch and not line.startswith("#"))
        if is_patch:
            kind = "file" if line.startswith(("--- ", "+++ ")) else signs.get(line[:1], "")
        else:
            kind = "remark" if line.startswith("#") else ""
        lines.append((kind, line))
    return lines


def list_changes(summary: "Summary") -> list[tuple[str, str]]:
    """Return the change as lines of a diff: sign (del or ins) and text."""
    show = summary.space.show
    return [
        line
        for name, (default, value) in summary.shipped.items()
        for line in (("del", f"-{name} {show(name, default)}"), ("ins", f"+{name} {show(name, value)}"))
    ]


def list_followers(summary: "Summary") -> list[str]:
    """Return the written settings whose values follow from those that are explained, each with its change."""
    found, show = summary.explanation, summary.space.show
    explained = {line.parameter for line in found.settings} if found is not None else set()
    return [
        f"{name} {show(name, default)} → {show(name, value)}"
        for name, (default, value) in (summary.shipped.items() if explained else ())
        if name not in explained
    ]


def list_worse(summary: "Summary") -> list[tuple[str, str]]:
    """Return what got worse anywhere, or limits what the gain says: a tone and a sentence each."""
    elsewhere = summary.winner_elsewhere
    found = [
        (
            "bad",
            f"The {summary.side} has less capacity: {'; '.join(summary.lacks)}." if summary.lacks else "",
        ),
        (
            "bad",
            "Without `allow: [capacity]` it is neither exported nor applied." if summary.is_held_back else "",
        ),
        ("open", describe_growth(summary)),
        ("open", describe_tail(summary)),
        ("open", describe_age(summary.gain.age if summary.gain else None, summary.side)),
        *(
            (each.finding.replace(" ", "-"), f"{capitalize(say_checked(each, summary.side))}.")
            for each in (elsewhere.warnings if elsewhere else ())
        ),
    ]
    return [(tone, text) for tone, text in found if text]


def describe_tests(summary: "Summary") -> str:
    """Return the exact test and the estimate that assumes no distribution; empty without pairs."""
    gain = summary.gain
    if gain is None:
        return ""
    least = 2 / 2**gain.pairs
    bound = f", the least that {gain.pairs} pairs can give" if gain.p_sign_flip <= least else ""
    return (
        f"Exact sign-flip test p = {gain.p_sign_flip:.3g}{bound}; Hodges–Lehmann estimate "
        f"{gain.hodges_lehmann:.2f}×."
    )


def list_contents(
    tables: "Mapping[str, list[Row]]", summary: "Summary", sweeps: "Sequence[Sweep]",
    curves: "Sequence[Curve]",
) -> list[tuple[str, str]]:  # fmt: skip
    """Return the sections of the page: anchor and title."""
    sections = (
        ("loads", "Under each load", tables["loads"]),
        ("hosts", "On each host", tables["hosts"]),
        ("conclusions", "Conclusions", summary.explanation),
        ("settings", "Changed settings", tables["changes"]),
        ("sweeps", "Sweeps", sweeps),
        ("curves", "Rising connections", curves),
        ("confirmation", "Confirmation", tables["pairs"] or tables["mechanisms"]),
        ("front", f"Goodput against {summary.cost}", tables["front"]),
        ("robustness", "Robustness checks", tables["robustness"]),
        ("mixes", "Requests as asked", summary.fidelity),
        ("responses", "Response times", tables["responses"]),
        ("constraints", "Constraints", tables["constraints"]),
        ("trials", "Trials", summary.speedups),
        ("validity", "Failures and validity", True),
        ("environment", "Environment", True),
    )
    return [(name, title) for name, title, content in sections if content]


def describe_verdict(summary: "Summary") -> Headline:
    """Return how the study ended, or how far it is, and whether the load generator was the limit."""
    headline, limit = _find_verdict(summary), describe_limit(summary)
    return replace(headline, text=f"{headline.text} {limit}") if limit else headline


def _find_verdict(summary: "Summary") -> Headline:
    """Return how the study ended, or how far it is."""
    gain = summary.gain
    if gain is not None and gain.verdict == "improved":
        return Headline(
            tone="good", figure=say_gain(gain),
            text=f"{_explain_figure(summary, gain)} The pairs are fresh trials of both, made after the "
            "search.",
        )  # fmt: skip
    if gain is not None and gain.is_proven:
        return Headline(
            tone="good", figure=capitalize(gain.verdict),
            text=f"{summary.reason} The gain is {say_gain(gain)}: {_explain_figure(summary, gain)}",
        )  # fmt: skip
    if gain is not None:
        return Headline(
            tone="plain", figure=f"{capitalize(gain.verdict)}: {say_gain(gain)}",
            text=f"Keep the default. {summary.reason} {_explain_figure(summary, gain)}",
        )  # fmt: skip
    if summary.state == "finished":
        return _describe_no_winner(summary)
    if summary.incumbent is None:
        return Headline(tone="open", figure="No result yet", text=f"The study is {summary.state}.")
    _, best = summary.incumbent
    return Headline(
        tone="open",
        figure=f"{say_ratio(best.ratio)} so far, not confirmed",
        text=f"The study is {summary.state}. The best configuration is estimated at {say_speedup(best)} "
        "by all trials; only a confirmation can tell what it is worth.",
    )


def _describe_no_winner(summary: "Summary") -> Headline:
    found = summary.found
    if found is None:
        return Headline(
            tone="plain", figure=capitalize(NOTHING_BETTER), text=f"{_say_end(summary)}Keep the default.",
        )  # fmt: skip
    reason = say_rejection(found.reason)
    verdict = "Rejected" if found.reason.startswith("not confirmed: ") else "Not confirmed"
    return Headline(
        tone="plain", figure=f"{verdict}: {say_speedup(found.speedup)}, an estimate",
        text=f"Keep the default. {capitalize(reason)}. The figure is {_say_quotient(summary)}, as all trials "
        "estimate it. The brackets hold the 95 % confidence interval. No pairs confirmed it. "
        f"{summary.reason}",
    )  # fmt: skip


def _explain_figure(summary: "Summary", gain: "Gain") -> str:
    """Return what a gain is the ratio of, and what stands in its brackets."""
    p99 = f": the p99 is {1 / gain.ratio:.2f} times the default's" * (gain.metric is Metric.LATENCY_P99)
    return (
        f"{capitalize(_say_quotient(summary))}{_say_across(summary)}{p99}. The brackets hold the "
        f"{say_percent(gain.level)} confidence interval."
    )


def _say_quotient(summary: "Summary") -> str:
    """Return what is divided by what in a gain."""
    its = "that" if summary.metric is Metric.LATENCY_P99 else "those"
    return f"{say_metric(summary.metric)} with the {summary.side}, divided by {its} with the default"


def _say_across(summary: "Summary") -> str:
    """Return what counts of several loads and hosts, in brackets; nothing for one of each."""
    said = ", ".join(filter(None, (summary.across, summary.across_hosts)))
    return f" ({said})" if said else ""


def describe_age(age: "Age | None", side: str = "winner") -> str:
    """Return for which seconds under load the gain holds, with a warning when it moves with them."""
    if age is None:
        return ""
    trend = say_trend(age, ("default", side))
    later = f" {capitalize(trend)}." if trend else ""
    return f"The gain was {say_age(age)} and may differ later.{later}"


def describe_trends(age: "Age | None", side: str = "winner") -> str:
    """Return what changes between the youngest windows and the oldest; empty when no trial has two."""
    if age is None:
        return ""
    sides = (("default", age.default), (side, age.winner), ("their ratio", age.ratio))
    moved = [f"{name} {say_change(trend)}" for name, trend in sides if trend is not None]
    return f"From the youngest windows to the oldest: {'; '.join(moved)}." if moved else ""


def _say_end(summary: "Summary") -> str:
    """Return why a study ended without a winner, but for what the headline says."""
    known = summary.is_too_noisy or summary.stop_reason.startswith(NOTHING_BETTER)
    said = "" if known else f"{capitalize(summary.stop_reason or 'the study is finished')}. "
    return said + (f"{summary.reason} " if summary.reason else "")


def draw_figures(
    summary: "Summary", sweeps: "Sequence[Sweep]" = (), curves: "Sequence[Curve]" = ()
) -> "tuple[dict[str, Figure], list[tuple[str, str]]]":
    """Draw every figure for which there is something to show, by name.

    Returns:
        the figures; name and title of those that are slices.
    """
    from tuner.report.curve.page import draw_curve
    from tuner.report.figures import effects, mixes, settings, trials
    from tuner.report.sweep.page import draw_sweep

    found = summary.explanation
    slices = settings.draw_slices(summary)
    drawn = {
        "effects": effects.draw_effects(found) if found else None,
        "others": effects.draw_others(summary.space, found) if found else None,
        "costs": effects.draw_costs(found) if found else None,
        "pairs": trials.draw_pairs(summary),
        "history": trials.draw_history(summary),
        "front": trials.draw_front(summary),
        "parallel": settings.draw_parallel(summary),
        **mixes.draw_mixes(summary.fidelity),
        **{f"sweep-{number}": draw_sweep(sweep) for number, sweep in enumerate(sweeps)},
        **{f"curve-{number}": draw_curve(curve) for number, curve in enumerate(curves)},
        **{f"slice-{number}": each for number, each in enumerate(slices.values())},
    }
    return (
        {name: each for name, each in drawn.items() if each is not None},
        [(f"slice-{number}", title) for number, title in enumerate(slices)],
    )


def count_trials(summary: "Summary") -> list[Row]:
    """Count trials by role (rows) and state (columns of the page's table)."""
    counts = Counter((trial.role, trial.state) for trial in summary.trials)
    return [
        (role.label, *(str(counts[role, state]) for state in STATES))
        for role in Role
        if any(counts[role, state] for state in STATES)
    ]
