"""What servers, generators and hosts say stays text, wherever it is shown or written."""

import contextlib
import io
import json
import re
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache, partial
from html.parser import HTMLParser
from pathlib import PurePosixPath

import pytest
from rich.console import Console

from tests.unit.simulated_study import make_summary
from tuner import cli
from tuner.adapters.servers.apache.builds import DEBIAN, write_place
from tuner.cli.printing import print_json
from tuner.errors import Crashed
from tuner.export import Rendered, export
from tuner.export.provenance import comment
from tuner.records import Blame, Failure, Fingerprint, State, Verdict
from tuner.report.page import render_report
from tuner.report.progress import LineProgress, LiveProgress
from tuner.report.summary import Summary
from tuner.report.summary_json import summary_json
from tuner.report.terminal import final_screen

PAYLOADS = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<img src=x onerror=alert(3)>",
    '"><svg/onload=alert(4)>',
    "' onmouseover='alert(5)",
    "<!--", "]]>", "<a href=javascript:alert(6)>x</a>",
    "{{ 7 * 7 }}{% raw %}", "%{customdata[0]}<extra>x</extra>", "<b>bold</b><br>", "&lt;script&gt;",
    "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x1b[2J\x1b[H", "\x9b31m", "\x08\x08\x08ok",
    "\r\nFAKE: all is well",
    "one\ntwo", "one\u2028two", "\u202egnp.exe", "\u200b\ufeff", "\x00", "\udc9b", "\x7f",
    "[red]markup[/red]", "[/]", ":bomb:", "[link=file:///etc/passwd]x[/link]",
    "\nLoadModule evil_module /tmp/evil.so", "\nnet.core.somaxconn = 1", "\n;}\nload_module /tmp/evil.so;",
    "*/ \n#include", "\\\nInclude /tmp/evil.conf", "=cmd|' /C calc'!A0", "${jndi:ldap://x}", "$(reboot)",
    "`reboot`",
]  # fmt: skip
MARK = "M{}A"
KEPT = {
    "state",
    "preset",
    "space",
    "changes",
    "config",
    "verdict",
    "role",
    "objective",
    "constraints",
    "cost",
}
"""Words of tuner's own in a summary: no foreign text comes there."""
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\ufeff\ud800-\udfff]")


def marked(number: int) -> str:
    """Give a payload between marks by which it is found again."""
    return f"{MARK.format(number)}{PAYLOADS[number]}Z"


ALL = "\n".join(map(marked, range(len(PAYLOADS))))


def poison(value: object, text: str) -> object:
    """Put a text into every string of a summary that is not one of tuner's own words."""
    if isinstance(value, Enum) or not value:
        return value
    if isinstance(value, str):
        return text
    if is_dataclass(value) and not isinstance(value, type):
        changed = {
            each.name: poison(getattr(value, each.name), text)
            for each in fields(value)
            if each.init and each.name not in KEPT and not each.name.startswith("_")
        }
        return replace(value, **changed)
    if isinstance(value, tuple):
        return tuple(poison(each, text) for each in value)
    return value


@cache
def plain_summary() -> Summary:
    return make_summary(searches=14)


@cache
def hostile(text: str = ALL) -> Summary:
    plain = plain_summary()
    failure = Failure(kind=text, reason=text)
    verdict = Verdict(check=text, blame=Blame.WARNING, reason=text)
    trials = tuple(
        replace(trial, state=State.FAILED, windows=(), failure=failure)
        if trial.number in {5, 6}
        else replace(trial, windows=tuple(replace(each, verdicts=(verdict,)) for each in trial.windows))
        for trial in plain.trials
    )
    fingerprint = poison(plain.fingerprint, text)
    assert isinstance(fingerprint, Fingerprint)
    fingerprint = replace(fingerprint, servers={"nginx": text})
    words = dict.fromkeys(("study", "stop_reason", "created", "version", "workload"), text)
    return replace(plain, fingerprint=fingerprint, trials=trials, **words)


class Tags(HTMLParser):
    """Collects tags and attributes as a browser would see them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: set[tuple[str, tuple[str, ...]]] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.seen.add((tag, tuple(sorted(name for name, _ in attributes))))


@cache
def page() -> str:
    return render_report(hostile())


@cache
def descriptions() -> str:
    """Return the JSON of the figures, which describe each trial."""
    found = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page(), re.DOTALL)
    assert found is not None
    return found[1]


def test_a_hostile_report_has_the_tags_of_a_plain_one_and_no_other():
    plain = Tags(render_report(plain_summary())).seen

    assert Tags(page()).seen <= plain | {("tr", ()), ("td", ("class",)), ("ul", ()), ("li", ())}
    assert not [name for _, names in Tags(page()).seen for name in names if name.startswith("on")]


def test_a_report_shows_it_as_text():
    outside = page().replace(descriptions(), "")
    for number in range(len(PAYLOADS)):
        assert MARK.format(number) in page()
        if re.search("[<>&\"']", PAYLOADS[number]):
            assert marked(number) not in outside


def test_a_description_holds_it_as_text():
    lost = json.loads(descriptions())["history"]["data"][-1]
    told = lost["hovertext"][lost["x"].index(5)]

    assert lost["name"] == "no measurement"
    assert all(MARK.format(number) in told for number in range(len(PAYLOADS)))
    assert not CONTROL.search(told)
    assert not re.search("[<>]", told.replace("<br>", ""))
    assert not re.search("[<>&]", descriptions())


def drawn(*what: object) -> str:
    console = Console(file=io.StringIO(), width=200, force_terminal=False, markup=False, emoji=False)
    for each in what:
        console.print(each)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_last_screen_cannot_be_steered_by_it():
    for number in range(len(PAYLOADS)):
        text = marked(number)
        shown = drawn(final_screen(hostile(text), report=text, exports=[text]))

        assert MARK.format(number) in shown
        assert not CONTROL.search(shown)
        assert not re.search(r"^(FAKE|LoadModule|two)", shown, re.MULTILINE)


def test_the_progress_cannot_be_steered_by_it():
    for number in range(len(PAYLOADS)):
        text = marked(number)
        console = Console(file=io.StringIO(), width=200)
        failed = next(trial for trial in hostile(text).trials if trial.failure is not None)
        progress = LineProgress(console)
        progress.stage(text, 1, 2)
        progress.trial_begins(failed.role, text)
        progress.trial_ends(failed, None)
        progress.note(text)
        live = LiveProgress(Console(file=io.StringIO(), width=200, force_terminal=False))
        live.note(text)
        live.trial_begins(failed.role, text)

        shown = console.file.getvalue() + drawn(live._screen())
        assert MARK.format(number) in shown
        assert not CONTROL.search(shown)
        assert not re.search(r"^(FAKE|two)", shown, re.MULTILINE)


def fail(text: str, **_: object) -> None:
    raise Crashed(f"nginx: it ended: {text}")


def test_an_error_message_cannot_steer_the_terminal(monkeypatch, capsys):
    for number in range(len(PAYLOADS)):
        monkeypatch.setattr(cli, "app", partial(fail, marked(number)))
        with contextlib.suppress(SystemExit):
            cli.main()

        said = capsys.readouterr().err
        assert MARK.format(number) in said
        assert not CONTROL.search(said)


def test_json_is_ascii_and_gives_it_back_as_it_was(capsys):
    for number in range(len(PAYLOADS)):
        summary = hostile(marked(number))

        print_json(summary_json(summary))

        printed = capsys.readouterr().out
        assert printed.isascii()
        assert not CONTROL.search(printed)
        assert json.loads(printed)["fingerprint"]["host"] == marked(number)


SETTINGS = PurePosixPath("/run/tuner-export/apache2.conf")
SOMAXCONN = PurePosixPath("/proc/sys/net/core/somaxconn")
RENDERED = {
    "apache": Rendered(
        default={SETTINGS: b"Timeout 300\n"},
        winner={SETTINGS: b"Timeout 60\n"},
        drop_in=write_place(DEBIAN, "apache"),
    ),
    "sysctl": Rendered(default={SOMAXCONN: b"4096\n"}, winner={SOMAXCONN: b"65535\n"}),
}


@pytest.mark.parametrize("form", ["apache", "sysctl"])
def test_an_exported_file_keeps_it_in_its_comments(form):
    plain = export(plain_summary(), form, rendered=RENDERED)
    for number in range(len(PAYLOADS)):
        files = export(hostile(marked(number)), form, rendered=RENDERED)

        for name, content in files.items():
            lines, own = content.decode().splitlines(), plain[name].decode().splitlines()
            assert any(MARK.format(number) in line for line in lines)
            assert [line for line in lines if line[:1] != "#"] == [line for line in own if line[:1] != "#"]
            assert not any(CONTROL.search(line) or line.endswith("\\") for line in lines)


@pytest.mark.parametrize("end", ["\\", "\\ \\", " \\  "])
def test_no_comment_takes_in_the_line_after_it(end):
    assert comment(f"host: web1{end}") == "# host: web1\n"
