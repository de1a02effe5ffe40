"""The report page as text; tests/integration/test_report_in_browser.py looks at it."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import tuner.report
from tests.unit.simulated_study import FAILURES, make_summary, small_space
from tests.unit.space.test_acting import of_load
from tuner.campaign.stages.fixed_rate import LatencyClaim
from tuner.ports import ConnectTime, Failures
from tuner.records import Failure, Metric, Role, State, Trial
from tuner.records.latency import Quantile
from tuner.report.figures.objects import to_plotly
from tuner.report.figures.settings import draw_slice, draw_slices
from tuner.report.markup import SCRIPT_TAG, embed_script, mark_code
from tuner.report.page import STATES, describe_verdict, render_report
from tuner.report.rows import failure_rows, setting_rows
from tuner.report.summary import Summary
from tuner.report.summary_json import summary_json
from tuner.report.wording import say_number
from tuner.statistics.confirmation.paired_gain import judge_pairs

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


@cache
def summary() -> Summary:
    return make_summary(searches=14)


@cache
def page() -> str:
    return render_report(summary())


def test_the_verdict_stands_before_everything_else() -> None:
    gain = summary().gain
    assert gain is not None
    words = f"{gain.ratio:.2f}× [{gain.low:.2f}, {gain.high:.2f}], 6 pairs"

    body = page().split("<body>")[1]
    assert re.search(r'<p class="verdict good">(.*?)</p>', body)[1] == words
    assert body.index(words) < body.index("<h2")


def test_the_page_asks_for_nothing_from_outside() -> None:
    text = page().replace(SCRIPT_TAG, "")

    assert not re.search(r"""(src|action)\s*=|href="[^#]|url\(|@import|https?://""", text)
    assert "default-src 'none'" in text
    whole = embed_script(page())
    assert SCRIPT_TAG not in whole
    assert 4_000_000 < len(whole) - len(page()) < 6_000_000


def test_the_page_is_the_same_for_the_same_summary() -> None:
    assert render_report(summary()) == page()


def test_the_page_of_a_long_study_is_small_enough_to_send() -> None:
    measured = [trial for trial in summary().trials if trial.number in summary().speedups]
    many = [replace(measured[number % len(measured)], number=number) for number in range(400)]
    speedups = {
        trial.number: summary().speedups[measured[trial.number % len(measured)].number] for trial in many
    }
    text = render_report(replace(summary(), trials=tuple(many), speedups=speedups))

    assert len(text.encode()) < 1_500_000


def test_every_part_is_there() -> None:
    for title in (
        "Conclusions", "Effect per setting", "Other settings", "Confirmation",
        "Changed settings", "Every trial over time", "Parallel coordinates", "Failures and validity",
        "Noise", "Environment", "Time", "Provenance", f"All {len(summary().trials)} trials as a table",
    ):  # fmt: skip
        assert title in page(), title
    for word in ("server and load generator on one machine", "p99, corrected"):
        assert word in page(), word


def test_the_first_screen_says_what_to_change_by_how_much_at_what_price_and_how() -> None:
    commands = [("Apply it", "tuner apply s.yaml"), ("Undo it", "tuner apply s.yaml --undo")]
    text = render_report(summary(), commands=commands)
    parts = (
        'class="verdict',
        'id="diff"',
        'id="commands"',
        "does it help?",
        "</nav>",
        "<main>",
        "Conclusions</h2>",
    )
    places = [text.index(part) for part in parts]

    assert places == sorted(places)
    shown = Cells(text).rows
    assert {name for name, *_ in setting_rows(summary())} == {*summary().shipped}
    for row in setting_rows(summary()):
        assert [*row] in shown
    for _, command in commands:
        assert command in text


def test_every_section_of_the_contents_is_there() -> None:
    names = re.findall(r'<li><a href="#([\w-]+)">', page())

    assert {"conclusions", "settings", "confirmation", "trials", "environment"} <= {*names}
    assert re.findall(r'<h2 id="([\w-]+)">', page()) == names


class Cells(HTMLParser):
    """Collects the text of every cell of every table."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._is_inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if tag == "tr":
            self.rows.append([])
        if tag in {"th", "td"}:
            self.rows[-1].append("")
            self._is_inside = True

    def handle_endtag(self, tag: str) -> None:
        self._is_inside = self._is_inside and tag not in {"th", "td"}

    def handle_data(self, data: str) -> None:
        if self._is_inside:
            self.rows[-1][-1] += data.strip()


def test_no_cell_of_any_table_holds_a_list() -> None:
    rows = Cells(page()).rows

    states = [trial.state for trial in summary().trials if trial.role is Role.SEARCH]
    assert ["search", *(str(states.count(state)) for state in STATES)] in rows
    assert not [cell for row in rows for cell in row if re.match(r"[\[({]|None|<", cell)]


def figures_of(text: str) -> dict[str, dict[str, Any]]:
    """Return the figures that stand in a page."""
    data = re.search(r'id="figures-data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    found: dict[str, dict[str, Any]] = json.loads(data[1])
    return found


def test_every_figure_has_a_place_with_a_description() -> None:
    places = dict(re.findall(r'<div class="plot[^"]*" id="([\w-]+)"[^>]*aria-label="([^"]+)"', page()))

    assert {"effects", "pairs", "history", "parallel", "slice-0"} <= {*places}
    assert {*places} == {*figures_of(page())}
    assert all(places.values())


def test_every_figure_is_one_of_plotlys() -> None:
    for name, figure in figures_of(page()).items():
        made = to_plotly(figure)
        assert made.layout.title.text, name
        assert made.data, name


def test_what_is_shown_of_a_trial_is_what_the_table_says() -> None:
    history = figures_of(page())["history"]
    shown = {number: text for trace in history["data"] if "hovertext" in trace
             for number, text in zip(trace["x"], trace["hovertext"], strict=True)}  # fmt: skip

    lost = {trial.number for trial in summary().trials if trial.state in {State.FAILED, State.INVALID}}
    assert {*shown} == {*summary().speedups} | lost
    assert shown[0].startswith("trial 0, baseline, complete")


def test_a_parameter_that_the_default_switches_off_has_its_slice() -> None:
    made = make_summary(space=small_space(with_cache=True))
    assert "open_file_cache_valid" not in made.default.config

    figure = draw_slice(made, "open_file_cache_valid")

    assert figure is not None
    assert sum(len(trace["x"]) for trace in figure["data"]) == sum(
        "open_file_cache_valid" in trial.config and trial.number in made.speedups for trial in made.trials
    )


def test_a_parameter_of_which_one_value_was_measured_has_no_slice() -> None:
    controls = make_summary(searches=0)

    assert draw_slices(controls)
    assert not draw_slices(replace(controls, trials=controls.trials[:1]))


def make_hostile() -> Summary:
    plain = make_summary(searches=14)
    failure = Failure(kind=HOSTILE, reason=f"log says {HOSTILE}\x1b[31m %{{x}}")
    trials: list[Trial] = [
        replace(trial, state=State.FAILED, windows=(), failure=failure) if trial.number == 6 else trial
        for trial in plain.trials
    ]
    fingerprint = replace(plain.fingerprint, host=HOSTILE, cpu=HOSTILE, generator=HOSTILE)
    words = {"study": HOSTILE, "workload": HOSTILE, "stop_reason": HOSTILE}
    return replace(plain, fingerprint=fingerprint, trials=tuple(trials), **words)


def test_hostile_strings_stay_text() -> None:
    text = render_report(make_hostile())

    assert "<script>alert" not in text
    assert "<img" not in text
    scripts = re.findall(r"<script[^>]*>", text)
    kinds = {re.sub(r' id="[\w-]+"', "", script) for script in scripts}
    assert kinds == {"<script>", '<script type="application/json">', SCRIPT_TAG.removesuffix("</script>")}
    assert text.count("<script") == text.count("</script>")


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ({"searches": 0, "pairs": 0}, "No result yet"),
        ({"searches": 3, "pairs": 0}, "so far, not confirmed"),
        ({"searches": 40, "pairs": 0}, "so far, not confirmed"),
    ],
)
def test_an_unfinished_study_has_a_report_too(made: dict[str, int], words: str) -> None:
    text = render_report(make_summary(**made))

    assert words in text


def test_nothing_beat_the_default_is_a_result() -> None:
    plain = make_summary(searches=3, pairs=0)
    text = render_report(replace(plain, state="finished", stop_reason="budget spent"))

    assert "Nothing beat the default" in text
    assert "Keep the default." in text


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        ("nothing beat the default in the search", "9 configurations tried. Keep the default."),
        ("not confirmed: it crashed", "Not confirmed: it crashed. 9 configurations tried. Keep the default."),
        ("", "The study is finished. 9 configurations tried. Keep the default."),
    ],
)
def test_why_nothing_beat_the_default_is_said_once(ended: str, said: str) -> None:
    plain = replace(make_summary(searches=3, pairs=0), reason="9 configurations tried.")

    assert describe_verdict(replace(plain, state="finished", stop_reason=ended)).text == said


def test_an_unproven_gain_is_not_celebrated() -> None:
    gain = summary().gain
    assert gain is not None
    unproven = replace(summary(), gain=replace(gain, verdict="not proven"), reason="The pairs do not decide.")
    text = render_report(unproven)

    assert 'class="verdict plain"' in text
    words = re.sub(r"<[^>]+>", "", text)
    assert f"Not proven: {gain.ratio:.2f}× [{gain.low:.2f}, {gain.high:.2f}], 6 pairs" in words
    assert (
        "Keep the default. The pairs do not decide. Correct responses per second with the candidate, divided "
        "by those with the default. The brackets hold the 95 % confidence interval."
    ) in words
    assert "What the candidate changes" in words


def test_a_gain_in_response_times_says_what_becomes_of_the_p99() -> None:
    gain = replace(
        judge_pairs([(0.0, 0.69), (0.0, 0.70), (0.0, 0.69), (0.0, 0.70)]), metric=Metric.LATENCY_P99
    )
    told = describe_verdict(replace(summary(), gain=gain, metric=Metric.LATENCY_P99)).text

    assert told.startswith(
        "Speed of the slowest 1 % (1 / p99) with the winner, divided by that with the default: the p99 is "
        "0.50 times the default's. The brackets"
    )


def test_a_trial_that_was_stopped_early_is_no_failure() -> None:
    trial = next(each for each in summary().trials if each.role is Role.SEARCH and each.counts)
    pruned = replace(trial, state=State.PRUNED, failure=Failure(kind="pruned", reason="clearly worse"))
    failed = replace(trial, state=State.FAILED, windows=(), failure=Failure(kind="rejected", reason="no"))

    rows = failure_rows(replace(summary(), trials=(pruned, failed)))

    assert [row[:2] for row in rows] == [("rejected", "1")]


def test_a_p_value_that_cannot_be_less_says_so() -> None:
    assert "p = 0.125, the least that 4 pairs can give" in render_report(make_summary(searches=4, pairs=4))


def test_failed_requests_are_counted_by_kind() -> None:
    plain = make_summary(searches=3)
    first, *rest = plain.trials
    window = replace(first.windows[0], failures=Failures(status=1234, timeout=5))
    text = render_report(replace(plain, trials=(replace(first, windows=(window,)), *rest)))

    assert re.search(r">status</th><td[^>]*>1,234<", text)
    assert re.search(r">timeout</th><td[^>]*>5<", text)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"role": Role.ROBUSTNESS}, "timeout, under check loads"),
        ({"state": State.FAILED, "failure": FAILURES[0]}, "timeout"),
    ],
)
def test_a_failed_request_is_counted_whatever_became_of_its_trial(change: dict[str, Any], kind: str) -> None:
    plain = make_summary(searches=1, pairs=0)
    trials = [replace(each, windows=tuple(replace(w, failures=Failures()) for w in each.windows))
              for each in plain.trials]  # fmt: skip
    window = replace(trials[0].windows[0], failures=Failures(timeout=7))
    failing = replace(trials[0], windows=(window,), **change)

    assert "No request failed." in render_report(replace(plain, trials=tuple(trials)))
    text = render_report(replace(plain, trials=(failing, *trials[1:])))
    assert "No request failed" not in text
    assert [kind, "7", "1"] in Cells(text).rows


def test_the_import_leaves_jinja_and_numpy_alone() -> None:
    heavy = "{'jinja2', 'optuna', 'numpy'}"
    light = (
        "tuner.report.page, tuner.report.terminal, tuner.report.progress, tuner.report.conclusions, "
        "tuner.commands.page"
    )
    script = f"import sys, {light}; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"


def test_a_study_is_read_and_explained_without_all_of_the_distributions() -> None:
    """They take a quarter of the time of `tuner explain`."""
    modules = "tuner.commands.session, tuner.report.explanation.screen"
    script = f"import sys, {modules}; print('scipy.stats' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"


def test_response_times_at_a_fixed_rate_and_connection_times_are_shown() -> None:
    quantile = Quantile(value_ms=4.5, low_ms=4.2, high_ms=4.9)
    made = replace(
        summary(),
        latency=LatencyClaim(
            rate_rps=23_300, pairs=5, default_p99=quantile, winner_p99=None,
            ratio=judge_pairs([(0.0, -0.2), (0.0, -0.21), (0.0, -0.19)]),
        ),
        default=replace(summary().default, connect_time=ConnectTime(min_ms=0.05, mean_ms=0.21, max_ms=7.0)),
    )  # fmt: skip

    text = render_report(made)

    assert "Response times" in text
    for words in ("23,300 requests/s", "4.50 ms [4.20 ms, 4.90 ms]", "too few requests", "0.82× ["):
        assert words in text, words
    assert "0.0500 ms / 0.210 ms / 7.00 ms" in text
    assert 'id="responses"' not in page()


def test_a_gain_that_the_generator_limited_is_called_a_lower_bound() -> None:
    winner = summary().winner
    assert winner is not None

    text = render_report(replace(summary(), winner=replace(winner, is_lower_bound=True)))

    assert "lower bounds" in text.split("<h2")[0].split('<div class="first">')[0]
    assert "lower bounds" not in page()


def test_starts_that_were_never_steady_are_named() -> None:
    first = next(trial for trial in summary().trials if trial.counts)
    trials = tuple(
        replace(trial, steady=False) if trial.number == first.number else trial for trial in summary().trials
    )

    text = render_report(replace(summary(), trials=trials))

    assert "Doubtful trials" in text
    assert "no steady state" in text
    assert "Doubtful trials" not in page()


def test_what_cannot_act_stands_there_with_the_reason_and_its_source() -> None:
    space = of_load("nginx", keepalive=False)
    shown = render_report(replace(summary(), space=space))

    assert "without effect under this load" in shown
    assert "keepalive_requests" in shown
    assert "it acts only with keep-alive" in shown
    assert "without effect under this load" not in page()


def test_scripts_are_told_what_was_not_searched() -> None:
    told = summary_json(replace(summary(), space=of_load("nginx", keepalive=False)))["not_searched"]

    assert told["cannot_act"]["keepalive_requests"]["reason"] == "it acts only with keep-alive"
    assert told["held"]["etag"].startswith("its risk is semantic")


PATCH = """\
--- a/etc/nginx/nginx.conf
+++ b/etc/nginx/nginx.conf
@@ -1,2 +1,2 @@
 events {
-    worker_connections 768;
+    worker_connections 4096;
# tuner-h2o-settings.conf
- listen: 80
"""


def test_what_is_copied_is_the_change_of_the_files_and_the_table_has_the_values() -> None:
    text = render_report(summary(), change=PATCH)
    copied = re.search(r'<pre id="diff"[^>]*>(.*?)</pre>', text, re.DOTALL)

    assert copied is not None
    assert unescape(re.sub(r"<[^>]+>", "", copied[1])) == PATCH
    assert 'data-copy="diff"' in text
    assert '<span class="file">--- a/etc/nginx/nginx.conf</span>' in copied[1]
    assert '<span class="ins">+    worker_connections 4096;</span>' in copied[1]
    assert '<span class="">- listen: 80</span>' in copied[1], "no patch: it takes nothing away"
    assert ["sendfile", "on → off"] in [row[:2] for row in Cells(text).rows]


def test_the_commands_say_whether_there_is_anything_to_apply() -> None:
    commands = [("Do it", "true")]
    gain = summary().gain
    assert gain is not None
    unproven = replace(summary(), gain=replace(gain, verdict="not proven", low=0.9))

    assert "How to apply and undo it" in render_report(summary(), commands=commands)
    assert "Nothing to apply or undo. You can measure it again" in render_report(unproven, commands=commands)


def test_without_the_files_nothing_can_be_copied_that_no_server_reads() -> None:
    assert 'id="diff"' in page()
    assert 'data-copy="diff"' not in page()


def test_what_stands_between_backticks_is_code() -> None:
    assert mark_code("With `off` & more, a ` stays") == "With <code>off</code> &amp; more, a ` stays"
    assert "`" not in page().split("<header")[1].split("</header>")[0]


def test_no_template_counts_by_itself() -> None:
    """One of something is no plural, which `counted` knows."""
    folder = Path(tuner.report.__file__).parent / "templates"
    found = re.findall(r"length }} \w+s\b", "".join(path.read_text() for path in folder.glob("*.j2")))

    assert [say_number(count, "setting") for count in (0, 1, 2)] == ["0 settings", "1 setting", "2 settings"]
    assert found == []
