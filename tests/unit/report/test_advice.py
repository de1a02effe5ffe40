"""Advice as text, JSON, Markdown and a page: the worst first, with the command that measures it."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.unit.advice.samples import BITES, NEAR, PROPOSAL, TRY, make_advice, make_hostile
from tuner.advice.findings import Finding
from tuner.advice.rules import FOLDER, read_file, read_rules, rule_files
from tuner.advice.server_look import RunningProcess, RunningServer
from tuner.ports import Facts, Installation
from tuner.report.advice import (
    advice_json,
    advice_markdown,
    advice_page,
    advice_text,
    measure_command,
    rules_json,
    rules_text,
    say_verdict,
    show_change,
)

OVER_SSH = "ssh://root@web1"


class Elements(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize(
    ("findings", "said"),
    [
        ((BITES, NEAR, TRY), "1 limit bites now, 1 is near, 1 setting is worth trying"),
        ((BITES, BITES), "2 limits bite now"),
        ((NEAR, NEAR, TRY, TRY), "no limit bites now, 2 are near, 2 settings are worth trying"),
    ],
)
def test_the_verdict_counts_what_was_found(findings: tuple[Finding, ...], said: str):
    assert say_verdict(make_advice(*findings)) == said


def test_what_is_worth_trying_comes_last_and_bites_nobody():
    told = make_advice(NEAR, TRY)
    text = advice_text(told)

    assert not told.bites
    assert advice_json(told)["bites"] is False
    assert text.index("near, or did bite before") < text.index("worth trying, by hints")
    assert "open_file_cache off → 1,000" in text
    assert "costs" not in text[text.index("worth trying, by hints") :]
    assert "not measured yet; run tuner init nginx --managed && tuner check nginx.yaml && " in text


@pytest.mark.parametrize(
    ("finding", "host", "corpus", "command"),
    [
        (BITES, "local", None, "tuner init nginx --from-advice"),
        (BITES, OVER_SSH, None, f"tuner init nginx --from-advice --host {OVER_SSH}"),
        (TRY, "local", "my corpus", "tuner init nginx --managed --corpus 'my corpus'"),
        (replace(TRY, server="kernel"), OVER_SSH, None, f"tuner init sysctl --managed --host {OVER_SSH}"),
    ],
)
def test_each_finding_has_the_command_that_measures_it(finding, host, corpus, command):
    told = replace(make_advice(finding, host=host), corpus=corpus and Path(corpus))

    study = f"{command.split()[2]}.yaml"
    assert measure_command(finding, told) == (
        f"{command} && tuner check {study} && tuner run {study} --preset quick"
    )


def test_a_server_that_no_study_can_change_has_no_command():
    fixed = replace(BITES, server="haproxy", proposals=(replace(PROPOSAL, hint=None),))

    assert measure_command(fixed, make_advice(fixed)) == ""
    assert "<pre" not in advice_page(make_advice(fixed))


def test_the_page_has_the_verdict_first_and_every_part_of_a_finding():
    shown = Elements(advice_page(make_advice()))
    parts = [
        "Advice for local", "1 limit bites now", "1. nginx: Connections of a worker",
        "84 lines in the last hour", "20 → 4,096 (/etc/nginx/nginx.conf:8)",
        "Each worker holds more connections", "tuner init nginx --from-advice",
        "2. nginx: Open files per worker", "3. nginx: open_file_cache", "Not read",
    ]  # fmt: skip
    body = shown.text[shown.text.rindex("Advice for local") :]
    places = [body.index(part) for part in parts]

    assert places == sorted(places)
    assert "plotly" not in advice_page(make_advice())


def test_hostile_text_stays_text_in_every_form():
    told = make_hostile()
    honest, hostile = Elements(advice_page(make_advice(BITES))), Elements(advice_page(told))

    assert "img" not in hostile.tags
    assert hostile.tags.count("script") == honest.tags.count("script")
    assert "window.hacked = 1" in hostile.text
    for form in (advice_page(told), advice_text(told), advice_markdown(told)):
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f]", form)


def test_every_rule_is_listed_with_condition_and_source():
    files = [read_file(path)[1] for path in rule_files()]
    rows = rules_json(files)
    text = rules_text(files)

    assert len(rows) == sum(len(file.rules) for file in files) > 45
    assert all((each["now"] or each["next"]) and each["source"] for each in rows)
    assert [each["rule"] for each in rows if f"\n{each['rule']}\n" not in f"\n{text}"] == []
    assert re.search(r"^   now      A worker had no free connection .* \(error log\)$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("current", "value", "unit", "shown"),
    [
        ("unbuffered", 64, "KiB", "unbuffered → 64 KiB"),
        (60, 1, "s", "60 s → 1 s"),
        (20, 4096, "", "20 → 4,096"),
        (None, 4096, "", "→ 4,096"),
        (50, None, "", "now 50"),
        (None, None, "", ""),
    ],
)
def test_a_change_has_the_unit_of_its_values(current, value, unit, shown):
    proposal = replace(PROPOSAL, current=current, value=value, unit=unit)

    assert show_change(proposal) == shown
    assert " ".join(filter(None, ("worker_connections", shown, "("))) in advice_text(
        make_advice(replace(BITES, proposals=(proposal,)))
    )


def test_a_study_that_cannot_find_a_page_by_itself_needs_its_url():
    told = replace(make_advice(replace(BITES, server="php-fpm")), need_url=frozenset({"php-fpm"}))

    command = measure_command(told.findings[0], told)

    assert command.startswith("tuner init php-fpm --from-advice --url URL && ")
    assert "For URL, write the address of a page" in advice_text(told)
    assert "For URL, write the address of a page" in advice_page(told)
    assert "For URL" not in advice_text(make_advice(BITES))


def test_the_page_says_what_a_run_does_to_the_service():
    assert "A run restarts the service and sends load to it" in advice_page(make_advice(BITES))


def test_the_summary_names_the_process_that_was_looked_at():
    process = RunningProcess(pid=812, parent=1, command="nginx: master process nginx -c /srv/own.conf")
    server = RunningServer(
        name="nginx", rules=read_rules(FOLDER / "nginx.yaml"), first=process, workers=(process,),
        installation=Installation(facts=Facts(version=(1, 22, 1)), files={}, service=None),
    )  # fmt: skip

    text = advice_text(replace(make_advice(BITES), servers=(server,)))

    assert "Looked for 1.0 s at nginx 1.22.1 (process 812). No load was sent" in text


def test_the_summary_says_no_server_runs_only_if_servers_were_looked_for():
    told = make_advice(BITES)

    assert "Looked for 1.0 s at the kernel; no known server runs. No" in advice_text(told)
    assert "Looked for 1.0 s at the kernel. No" in advice_text(replace(told, is_of_kernel=True))
