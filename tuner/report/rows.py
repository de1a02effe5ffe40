"""The report's tables, as rows of text."""

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tuner.explain.explanation import Finding
from tuner.records import Blame, Metric, Role, State
from tuner.report.wording import (
    LATER,
    LIMITED,
    LOWER_BOUND,
    NOTHING,
    capitalize,
    is_young,
    say_count,
    say_duration,
    say_estimate,
    say_failures,
    say_gain,
    say_metric,
    say_milliseconds,
    say_number,
    say_percent,
    say_quantile,
    say_rate,
    say_ratio,
    say_roughly,
    say_speedup,
    say_tail,
)
from tuner.shell_words import write_command
from tuner.study.objective import FAILURE_RATE

if TYPE_CHECKING:
    from tuner.explain.explanation import Setting
    from tuner.ports import Scalar
    from tuner.report.summary import Arm, Sides, Summary
    from tuner.space import Derived, Parameter
    from tuner.statistics.failure_rate import CredibleInterval

FAILURE_KINDS = ("connect", "read", "write", "timeout", "status", "length", "other")
LONGEST_REASON = 400
LIKE_RATE = 1.05
"""Two rates that differ by less give response times that compare."""
NEARLY = 0.99
"""A probability of which more digits say nothing."""

Row = tuple[str, ...]


def arm_rows(summary: "Summary") -> list[Row]:
    """Return the head, and default and winner: requests per second, p99, failures, trials."""
    sides = {"default": summary.default, summary.side: summary.winner}
    return table_of_arms([(name, arm) for name, arm in sides.items() if arm is not None])


def table_of_arms(arms: "Sequence[tuple[str, Arm]]") -> list[Row]:
    """Return the head, and a row for each arm: its name, requests per second, p99, failures, trials."""
    # One that was corrected compares with its like only.
    p99 = "p99, corrected" if any(arm.latency_corrected for _, arm in arms) else "p99"
    head = ("", "requests/s", p99, "failures", "trials")
    return [head, *((name, *describe_arm(arm)) for name, arm in arms)]


def describe_arm(arm: "Arm") -> Row:
    """Return requests per second, p99, failures and trials of one configuration."""
    return (
        say_rate(arm.goodput_rps),
        say_milliseconds(arm.latency_p99_ms),
        say_failures(arm.failures, arm.requests),
        f"{arm.trials}, {arm.failed_trials} failed" if arm.failed_trials else str(arm.trials),
    )


def describe_limit(summary: "Summary") -> str:
    """Return what the load generator's own limit means for the figures; empty where it was none."""
    default, winner = summary.default, summary.winner
    if summary.metric is Metric.PER_CPU:
        said = f"{capitalize(LIMITED)}, so {say_metric(summary.metric)} are compared"
        if default.requests_per_cpu_s is None:
            return f"{said}."
        compared, served = say_rate(default.requests_per_cpu_s), say_rate(default.goodput_rps)
        figures, goodput = f"default {compared}", f"default {served}"
        if winner is not None and winner.requests_per_cpu_s is not None:
            figures += f", {summary.side} {say_rate(winner.requests_per_cpu_s)}"
            goodput += f", {summary.side} {say_rate(winner.goodput_rps)}"
        return f"{said}: {figures}. Requests per second: {goodput}."
    return LOWER_BOUND if winner is not None and winner.is_lower_bound else ""


def describe_tail(summary: "Summary") -> str:
    """Return that the winner's slowest responses take longer under the study's load, and what rules it out.

    Empty where they do not, where response times were measured at a fixed rate, which says more, and where
    the study bounds them itself.
    """
    is_bounded = any(each.metric.startswith("latency_") for each in summary.assessments)
    said = say_tail(summary.gain, second=f"the {summary.side}")
    if summary.gain is None or not said or is_bounded or summary.latency is not None:
        return ""
    later = write_command("tuner", "compare", "STUDY", "default", summary.side, "--preset", LATER)
    measured = f"`{later}` measures later; " if is_young(summary.gain.age) else ""
    return (
        f"{capitalize(said)}. {measured}`constraints: [latency_p99_ms <= default]` in a new study rules that "
        "out."
    )


def describe_rates(
    first: "Arm", second: "Arm | None", *, is_fixed: bool = False, may_be_fixed: bool = True
) -> str:
    """Return that two p99s are of different rates, and so do not compare; empty where they may be compared.

    In a closed loop each side has the rate that it can serve, and what a generator corrects for late requests
    goes by that rate, too.

    Args:
        first: one side, under the study's load.
        second: the other; None without one.
        is_fixed: whether both were also measured at the same rate.
        may_be_fixed: whether a longer preset would do that.
    """
    if second is None or first.latency_p99_ms is None or second.latency_p99_ms is None:
        return ""
    slower, quicker = sorted((first.goodput_rps, second.goodput_rps))
    if quicker <= LIKE_RATE * slower:
        return ""
    rates = f"{say_rate(first.goodput_rps)} requests/s, the other at {say_rate(second.goodput_rps)}"
    said = f"Do not compare these p99: one was measured at {rates}."
    if is_fixed:
        return f"{said} Compare the p99 at one rate."
    return f"{said} `--preset {LATER}` measures both at one rate." if may_be_fixed else said


def describe_unlike_rates(summary: "Summary") -> str:
    """Return why both p99s of a study do not compare; empty where they do."""
    return describe_rates(
        summary.default, summary.winner, is_fixed=summary.latency is not None,
        may_be_fixed=summary.preset == "quick",
    )  # fmt: skip


def constraint_rows(summary: "Summary") -> list[Row]:
    """Show each constraint: winner, default, the probability that the winner keeps it."""
    rows: list[Row] = []
    for each in summary.assessments:
        chance = say_percent(each.probability, 0) if each.probability < NEARLY else "over 99 %"
        rows.append((each.constraint, each.finding, each.finding_of_default, chance))
    return rows


def response_rows(summary: "Summary") -> list[Row]:
    """Return response times at a fixed rate and under the load, and how long connections took to be made."""
    rows: list[Row] = []
    claim = summary.latency
    if claim is not None:
        rows += [
            ("rate of both", f"{say_rate(claim.rate_rps)} requests/s, well below what the default can take"),
            ("p99 of the default", say_quantile(claim.default_p99)),
            ("p99 of the winner", say_quantile(claim.winner_p99)),
            ("p99 of the winner over the default's", say_gain(claim.ratio)),
        ]
    for name, arm in (("default", summary.default), (summary.side, summary.winner)):
        if arm is not None:
            rows += _arm_responses(summary, name, arm)
    return rows


def _arm_responses(summary: "Summary", name: str, arm: "Arm") -> list[Row]:
    """Show one side as benchmarks that end after so many requests report it."""
    rows: list[Row] = []
    if summary.requests_total is not None:
        count = f"{summary.requests_total:,} requests"
        rows.append((f"time for {count} of the {name}, median", f"{arm.window_s:.3g} s"))
        times = {quantile: say_milliseconds(value) for quantile, value in arm.latency_ms.items()}
        if times:
            rows.append((f"response times of the {name}, {' / '.join(times)}", " / ".join(times.values())))
    if arm.connect_time is not None:
        bounds = (arm.connect_time.min_ms, arm.connect_time.mean_ms, arm.connect_time.max_ms)
        shown = " / ".join(say_milliseconds(each) for each in bounds)
        rows.append((f"connection establishment of the {name}, min / mean / max", shown))
    return rows


def load_rows(summary: "Summary") -> list[Row]:
    """Show both sides under each of several loads: weight, requests/s, winner's failures, gain, verdict."""
    return [(each.name, say_percent(each.weight, 0), *_show_sides(each)) for each in summary.by_load]


def host_rows(summary: "Summary") -> list[Row]:
    """Show both sides on each of several hosts: requests/s, winner's failures, gain, verdict."""
    return [
        (f"{each.name} (worst)" if each.is_worst else each.name, *_show_sides(each))
        for each in summary.by_host
    ]


def _show_sides(each: "Sides") -> Row:
    """Return requests/s of both sides under one load or on one host, and the winner's failures and gain."""
    winner, gain = each.winner, each.gain
    return (
        say_rate(each.default.goodput_rps),
        NOTHING if winner is None else say_rate(winner.goodput_rps),
        NOTHING if winner is None else say_failures(winner.failures, winner.requests),
        NOTHING if gain is None else say_estimate(gain),
        NOTHING if gain is None else gain.verdict,
    )


def change_rows(summary: "Summary") -> list[Row]:
    """Return each written setting: name, default, value, server, why it is tuned, what else it does."""
    settings: tuple[Parameter | Derived, ...] = (*summary.space.parameters, *summary.space.derived)
    known = {each.name: (each.server, each.why, summary.space.also(each.name)) for each in settings}
    return [
        (name, *(summary.space.show(name, each) for each in pair), *known.get(name, ("", "", "")))
        for name, pair in summary.shipped.items()
    ]


def side_rows(summary: "Summary") -> list[Row]:
    """Return default and winner side by side: a row for each figure, and for each check that rejects it."""
    (_, *titles), *sides = arm_rows(summary)
    unlike = "; do not compare" if describe_rates(summary.default, summary.winner) else ""
    figures = zip(*(cells for _, *cells in sides), strict=True)
    rows: list[Row] = [
        (f"{title}{unlike if title.startswith('p99') else ''}", *cells)
        for title, cells in zip(titles, figures, strict=True)
    ]
    if memory := memory_cells(summary):
        rows.append(("memory of the server", *memory))
    rows += _list_broken(summary)
    elsewhere = summary.winner_elsewhere
    for each in elsewhere.checked if elsewhere is not None else ():
        both = (each.default, each.candidate)
        if each.finding == "fails":
            rows.append(
                (f"failed with {each.check_load.name}", *(say_percent(side.failure_rate, 2) for side in both))
            )
        elif each.is_rejected:
            rows.append(
                (f"requests/s with {each.check_load.name}", *(say_rate(side.goodput_rps) for side in both))
            )
    return rows


def _list_broken(summary: "Summary") -> list[Row]:
    """Return the metric of each constraint that keeps the candidate from being shipped, over all trials."""
    if summary.gain is None or summary.gain.is_proven:
        return []
    return [
        (
            f"{each.metric}, all trials",
            *(_say_seen(each.metric, side) for side in (each.of_default, each.seen)),
        )
        for each in summary.assessments
        if each.probability < each.needed and each.seen is not None
    ]


def _say_seen(metric: str, seen: "CredibleInterval | None") -> str:
    """Write what was seen of a metric, without its interval."""
    from tuner.statistics.feasibility import say_share

    if seen is None:
        return NOTHING
    return say_share(seen.value) if metric == FAILURE_RATE else say_count(seen.value)


def memory_cells(summary: "Summary") -> tuple[str, ...]:
    """Return the measured memory of default and winner; empty where that of one could not be read."""
    arms = [arm for arm in (summary.default, summary.winner) if arm is not None]
    cells = tuple(say_roughly(arm.memory_mib, "MiB") for arm in arms if arm.memory_mib is not None)
    return cells if len(cells) == len(arms) else ()


def setting_rows(summary: "Summary") -> list[Row]:
    """Return each explained setting of those that are written: name, change, effect, if it helps, price.

    Whether it helps is left out for what was found and is not shipped.
    """
    found = summary.explanation
    return [
        (line.parameter, _show_change(summary, line.parameter, line.default, line.value),
         say_estimate(line.effect), *(() if summary.found is not None else (say_finding(line),)),
         summary.space.also(line.parameter) or NOTHING)
        for line in (found.settings if found is not None and found.gain is not None else ())
        if line.parameter in summary.shipped
    ]  # fmt: skip


def effect_rows(summary: "Summary") -> list[Row]:
    """Return what is explained of each setting: name, change, effect, effect if reverted, finding."""
    found = summary.explanation
    rows: list[Row] = []
    for line in found.settings if found is not None and found.gain is not None else ():
        moved = "; ".join(each.sentence for each in line.mechanisms)
        told = say_finding(line) + (f". With it: {moved}" if moved else "")
        change = _show_change(summary, line.parameter, line.default, line.value)
        rows.append((line.parameter, change, say_estimate(line.effect), say_estimate(line.if_reverted), told))
    if rows and found is not None and found.gain is not None:
        rows.append(("together", "", say_estimate(found.gain), "", ""))
    return rows


def other_rows(summary: "Summary") -> list[Row]:
    """Return what each other setting of known effect would do: name, change, effect, finding."""
    found = summary.explanation
    return [
        (
            each.parameter,
            NOTHING if each.value is None
            else _show_change(summary, each.parameter, each.default, each.value),
            say_estimate(each.effect),
            say_bound(each.finding, each.bound),
        )
        for each in (found.others if found is not None else ())
        if each.effect is not None
    ]  # fmt: skip


def cost_rows(summary: "Summary") -> list[Row]:
    """Return what each setting does to the second objective: name, change, factor."""
    found = summary.explanation
    beside = found.beside if found is not None else None
    return [
        (line.parameter, _show_change(summary, line.parameter, line.default, line.value),
         say_estimate(line.effect))
        for line in (beside.settings if beside is not None else ())
    ]  # fmt: skip


def _show_change(summary: "Summary", name: str, default: "Scalar | None", value: "Scalar") -> str:
    before = NOTHING if default is None else summary.space.show(name, default)
    return f"{before} → {summary.space.show(name, value)}"


def say_finding(line: "Setting") -> str:
    """Write what can be said of a setting: helps, no effect beyond ± 2 %, 93 % likely to help."""
    if line.finding is Finding.UNKNOWN:
        return f"{say_percent(line.chance, 0)} likely to help"
    return say_bound(line.finding, line.bound)


def say_bound(finding: Finding, bound: float | None) -> str:
    """Write a finding, and how sure it is that there is none."""
    if finding is Finding.NO_EFFECT and bound is not None:
        return f"{finding.value} beyond ± {say_percent(bound)}"
    return finding.value


def capacity_rows(summary: "Summary") -> list[Row]:
    """Return what default and winner hold at once: server, default, winner."""
    default = summary.space.describe_capacity(summary.default.config)
    winner = {} if summary.winner is None else summary.space.describe_capacity(summary.winner.config)
    return [(server, held, winner.get(server, NOTHING)) for server, held in default.items()]


def describe_growth(summary: "Summary") -> str:
    """Return that the settings need much more memory than the default; empty where they do not."""
    if not summary.grows:
        return ""
    said = f"Memory grows: {'; '.join(map(str, summary.grows))}."
    grown = {each.setting for each in summary.grows}
    doubtful = [
        line.parameter
        for line in (summary.explanation.settings if summary.explanation is not None else ())
        if line.parameter in grown and line.finding is not Finding.HELPS
    ]
    if not doubtful:
        return said
    names = ", ".join(doubtful)
    return (
        f"{said} Not shown to help: {names}. To leave it out, write `- {{without: [{names}]}}` under "
        "`space:` in a new study."
    )


def inert_rows(summary: "Summary") -> list[Row]:
    """Show what cannot act under the study's load: setting, why, where that is known from."""
    known = {each.name: each.acts_source for each in summary.space.parameters}
    return [(name, reason, known[name]) for name, reason in summary.space.inert.items()]


def pair_rows(summary: "Summary") -> list[Row]:
    """Return the winner relative to the default in each pair of the confirmation."""
    return [(str(number), say_ratio(ratio)) for number, ratio in enumerate(summary.pair_ratios.values(), 1)]


def front_rows(summary: "Summary") -> list[Row]:
    """Return what nothing beats in both objectives: pick, goodput, cost, trials, changed settings."""
    return [
        (
            str(number),
            say_speedup(choice.goodput),
            say_speedup(choice.cost),
            str(choice.trials),
            ", ".join(summary.show_changes(choice.config)) or "the default",
        )
        for number, choice in enumerate(summary.front, 1)
    ]


def robustness_rows(summary: "Summary") -> list[Row]:
    """Show the robustness checks: of whom, load, requests per second of both, ratio, failures, finding."""
    rows: list[Row] = []
    for number, found in enumerate(summary.robustness, 1):
        name = summary.side if summary.is_winner(found.config) else f"candidate {number}"
        for each in found.checked:
            rates = (each.default.failure_rate, each.candidate.failure_rate)
            rows.append(
                (
                    name,
                    each.check_load.name,
                    say_rate(each.default.goodput_rps),
                    say_rate(each.candidate.goodput_rps),
                    say_estimate(each),
                    " → ".join(say_percent(rate, 2) for rate in rates),
                    each.finding,
                )
            )
        reasons = {**found.left_out} | ({"any": found.failure} if found.failure else {})
        rows += [(name, what, NOTHING, NOTHING, NOTHING, NOTHING, why) for what, why in reasons.items()]
    return rows


def mechanism_rows(summary: "Summary") -> list[Row]:
    """Return what differed on the machine between default and winner: name, values, ratio."""
    return [
        (
            each.name,
            say_count(each.default, each.unit),
            say_count(each.winner, each.unit),
            say_ratio(each.ratio),
        )
        for each in summary.mechanisms
    ]


def idle_rows(summary: "Summary") -> list[Row]:
    """Return the other settings of which no effect is known: name, finding, bound or reason.

    Those that cannot act have a table of their own, with sources.
    """
    found = summary.explanation
    rows: list[Row] = []
    for each in found.others if found is not None else ():
        if each.effect is None and each.finding is not Finding.CANNOT_ACT:
            bound = each.reason if each.bound is None else f"none beyond ± {say_percent(each.bound)}"
            rows.append((each.parameter, each.finding.value, bound or NOTHING))
    return rows


def tolerance_rows(summary: "Summary") -> list[Row]:
    """Return where the gain stays: setting, value, from, to, what is lost there at the most."""
    found, show = summary.explanation, summary.space.show
    return [
        (
            each.parameter,
            show(each.parameter, each.value),
            show(each.parameter, each.low) + (", lowest searched" if each.is_open_below else ""),
            show(each.parameter, each.high) + (", highest searched" if each.is_open_above else ""),
            say_percent(each.loss),
        )
        for each in (found.tolerances if found is not None else ())
    ]


def interaction_rows(summary: "Summary") -> list[Row]:
    """Return what two settings give together beyond what each gives alone."""
    found = summary.explanation
    return [
        (
            " and ".join(each.parameters),
            say_estimate(each.effect),
            "help each other" if each.effect.ratio > 1 else "share what they give",
        )
        for each in (found.interactions if found is not None else ())
    ]


def failure_rows(summary: "Summary") -> list[Row]:
    """Count trials without a measurement by class: class, trials, their roles, one reason.

    Those that were stopped early have one.
    """
    lost = [
        (trial, trial.failure)
        for trial in summary.trials
        if trial.failure is not None and trial.state is not State.PRUNED
    ]
    counts = Counter(failure.kind for _, failure in lost)
    rows: list[Row] = []
    for kind, count in counts.most_common():
        of_kind = [(trial, failure) for trial, failure in lost if failure.kind == kind]
        roles = Counter(trial.role.label for trial, _ in of_kind)
        while_ = ", ".join(f"{role} {times}" for role, times in roles.most_common())
        trial, failure = of_kind[0]
        reason = failure.reason.strip()
        cut = reason if len(reason) <= LONGEST_REASON else reason[:LONGEST_REASON] + " …"
        rows.append((kind, str(count), while_, f"trial {trial.number}: {cut}"))
    return rows


def request_failure_rows(summary: "Summary") -> list[Row]:
    """Count failed requests by kind over all trials; those under check loads have rows of their own."""
    rows: list[Row] = []
    for where, is_check in (("", False), (", under check loads", True)):
        trials = [trial for trial in summary.trials if (trial.role is Role.ROBUSTNESS) is is_check]
        for kind in FAILURE_KINDS:
            failed = [sum(getattr(each.failures, kind) for each in trial.windows) for trial in trials]
            if any(failed):
                rows.append((f"{kind}{where}", f"{sum(failed):,}", str(sum(map(bool, failed)))))
    return rows


def validity_rows(summary: "Summary") -> list[Row]:
    """Count what the validity checks found: check, whose fault, windows, one reason."""
    found = [
        verdict for trial in summary.trials for window in trial.windows for verdict in window.verdicts
    ]  # fmt: skip
    counts = Counter((verdict.check, verdict.blame) for verdict in found)
    blames = {
        Blame.ENVIRONMENT: "environment: measured again",
        Blame.CONFIGURATION: "configuration: counts against it",
        Blame.WARNING: "warning only",
    }
    return [
        (check, blames[blame], str(count),
         next(verdict.reason for verdict in found if (verdict.check, verdict.blame) == (check, blame)))
        for (check, blame), count in counts.most_common()
    ]  # fmt: skip


def doubt_rows(summary: "Summary") -> list[Row]:
    """List the trials that are doubtful as a whole: problem, trial numbers, meaning."""
    from tuner.statistics.jumps import suspects
    from tuner.statistics.ranking import as_baselines
    from tuner.statistics.steady import declines

    trials = as_baselines(summary.trials)
    counted = [trial for trial in trials if trial.counts]
    found = (
        (
            "no steady state", [trial.number for trial in counted if not trial.steady],
            "goodput still changed when the warm-up was over; such a trial has four times the variance",
        ),
        (
            "decline",
            [s.number for s in counted if declines(s.valid_windows, spread=summary.noise.sigma_window)],
            "goodput fell from window to window; on a burstable machine its CPU credit may be used up",
        ),
        (
            "carry-over", list(suspects(trials, summary.noise)),
            "the next baseline trial was far off: the machine changed, or this trial left something behind",
        ),
    )  # fmt: skip
    return [(what, ", ".join(map(str, numbers)), meaning) for what, numbers, meaning in found if numbers]


def noise_rows(summary: "Summary") -> list[Row]:
    """Return how noisy the host was, and what gain it can prove."""
    from tuner.statistics.noise import detectable_gain

    noise = summary.noise
    pairs = summary.gain.pairs if summary.gain is not None else 6
    counted = [len(trial.valid_windows) for trial in summary.trials if trial.counts]
    windows = round(statistics.median(counted)) if counted else 1
    gain = detectable_gain(noise, pairs=pairs, windows=max(1, windows))
    return [
        ("between windows of one trial, σ_w", say_percent(noise.sigma_window, 2)),
        ("between trials of one configuration, σ_b", say_percent(noise.sigma_trial, 2)),
        ("drift of the host's speed in ten minutes", say_percent((600 * noise.drift_per_s) ** 0.5, 2)),
        (f"gain that {say_number(pairs, 'pair')} can prove (80 % power)", f"{say_ratio(1 + gain)} or more"),
    ]


def environment_rows(summary: "Summary") -> list[Row]:
    """Return the machine and the programs that the study was measured with."""
    fingerprint = summary.fingerprint
    server, load = (
        ", ".join(map(str, cpus)) or "any" for cpus in (fingerprint.server_cpus, fingerprint.generator_cpus)
    )
    places = (
        f"co-located: server on CPU {server}, load generator on CPU {load} of the same machine"
        if fingerprint.co_located
        else "load generator on another machine"
    )
    return [
        ("host", fingerprint.host),
        ("kernel", fingerprint.kernel),
        ("CPU", f"{fingerprint.cpu}, {fingerprint.cores} cores"),
        ("memory", f"{fingerprint.memory_mib:,} MiB"),
        *([("limits", fingerprint.limits)] if fingerprint.limits else []),
        *((name, version) for name, version in fingerprint.servers.items()),
        ("load generator", fingerprint.generator),
        ("placement", places),
    ]


def timing_rows(summary: "Summary") -> list[Row]:
    """Return where the time of the study went."""
    timing = summary.timing
    total_s = timing.get("total_s", 0.0)
    rows: list[Row] = [("first to last trial", say_duration(total_s))]
    for key, title in (("load_s", "under load"), ("deploy_s", "deploying"), ("suggest_s", "suggesting")):
        share = timing.get(key, 0.0) / total_s if total_s > 0 else 0.0
        rows.append((title, f"{say_duration(timing.get(key, 0.0))} ({say_percent(share)})"))
    for key, title in (
        ("deploy_median_s", "deploy of one trial, median"),
        ("suggest_max_s", "longest suggestion"),
        ("store_max_s", "slowest write of a result"),
    ):
        if key in timing:
            rows.append((title, say_milliseconds(1000 * timing[key])))
    return rows


def provenance_rows(summary: "Summary") -> list[Row]:
    """Return what was asked, when, and of which version."""
    return [
        ("study", summary.study),
        ("state", f"{summary.state}: {summary.stop_reason}" if summary.stop_reason else summary.state),
        ("begun", summary.created),
        ("tuner", summary.version),
        ("preset", summary.preset),
        ("objective", summary.objective),
        (
            "compared",
            ", ".join(filter(None, (say_metric(summary.metric), summary.across, summary.across_hosts))),
        ),
        ("constraints", "; ".join(summary.constraints) or "none"),
        ("load", summary.workload),
        ("space", " + ".join(summary.space.names)),
        ("searched", say_number(len(summary.space.dimensions), "dimension")),
    ]


def trial_rows(summary: "Summary") -> list[Row]:
    """List every trial: what the figures show, to be read instead of seen."""
    return [
        (
            str(trial.number),
            trial.role.label,
            trial.state.value if trial.failure is None else f"{trial.state.value}: {trial.failure.kind}",
            say_speedup(summary.speedups.get(trial.number)),
            say_rate(statistics.fmean(each.goodput_rps for each in trial.valid_windows))
            if trial.valid_windows else NOTHING,
            ", ".join(summary.show_changes(trial.config)) or "the default",
        )
        for trial in summary.trials
    ]  # fmt: skip


TABLES: "Mapping[str, Callable[[Summary], list[Row]]]" = {
    "sides": side_rows,
    "settings": setting_rows,
    "effects": effect_rows,
    "others": other_rows,
    "costs": cost_rows,
    "pairs": pair_rows,
    "capacity": capacity_rows,
    "loads": load_rows,
    "hosts": host_rows,
    "changes": change_rows,
    "inert": inert_rows,
    "constraints": constraint_rows,
    "idle": idle_rows,
    "tolerances": tolerance_rows,
    "interactions": interaction_rows,
    "mechanisms": mechanism_rows,
    "front": front_rows,
    "robustness": robustness_rows,
    "failures": failure_rows,
    "request_failures": request_failure_rows,
    "validity": validity_rows,
    "doubts": doubt_rows,
    "responses": response_rows,
    "noise": noise_rows,
    "environment": environment_rows,
    "timing": timing_rows,
    "provenance": provenance_rows,
    "trials": trial_rows,
}
"""Every table, by its name in the page's template."""
