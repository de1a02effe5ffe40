"""A page and an explanation that were kept are those that would be made anew."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.unit.export.test_host_change import MAIN, of_nginx
from tests.unit.simulated_study import FINGERPRINT
from tests.unit.simulation import TUNED, SimulatedHost, make_campaign, open_on_disk, space_of, write_study
from tuner.campaign.campaign import run_campaign
from tuner.cli.study_commands import explain
from tuner.commands.kept_files import recall_differences, remember_differences
from tuner.commands.outputs import write_export
from tuner.commands.page import NAME as PAGE
from tuner.commands.page import find_explanation, find_page, keep_page, list_commands, make_page
from tuner.commands.session import read
from tuner.explain.cache import NAME as EXPLANATION
from tuner.export import Rendered
from tuner.report.explanation.as_json import explanation_json
from tuner.report.summary import Found
from tuner.report.summary_json import summary_json
from tuner.space import SpaceFacts, facts_to_json
from tuner.statistics.baseline_level import Speedup
from tuner.statistics.confirmation.paired_gain import judge_pairs, pairs_to_decide
from tuner.study import load_study
from tuner.study.cache import FOLDER, keep
from tuner.study.facts import PRESET, SPACE_FACTS, VERDICT

FACTS = SpaceFacts(
    names={"cores": 2, "memory_mib": 7900, "connections": 100, "open_files_max": 1048576, "somaxconn": 4096},
    versions={"nginx": (1, 22, 1)},
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A study with its winner; not to be changed."""
    settings, host = write_study(tmp_path_factory.mktemp("finished")), SimulatedHost()
    storage, space = open_on_disk(settings, host.clock), space_of(*TUNED)
    storage.claim(FINGERPRINT, definition=settings.definition(space))
    storage.remember(SPACE_FACTS, facts_to_json(FACTS, {}))
    storage.remember(PRESET, "quick")
    storage.remember(VERDICT, run_campaign(make_campaign(settings, host, storage)))
    return settings.path.parent


@pytest.fixture
def settings(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "study")
    return load_study(tmp_path / "study" / "simulated.yaml")


def kept_key(settings) -> bytes:
    """Return the key under which the explanation is kept."""
    head = (settings.folder / FOLDER / EXPLANATION).read_bytes().partition(b"\n")[0]
    return head[: len(head) // 2]


def test_an_explanation_that_was_kept_gives_the_same_page_and_the_same_json(settings):
    first = read(settings)
    assert (settings.folder / FOLDER / EXPLANATION).is_file()

    again = read(settings)

    assert again.summary.explanation == first.summary.explanation
    assert json.dumps(summary_json(again.summary)) == json.dumps(summary_json(first.summary))
    assert json.dumps(explanation_json(again.summary.explanation)) == json.dumps(
        explanation_json(first.summary.explanation)
    )
    assert make_page(again) == make_page(first)


def test_a_page_that_was_kept_is_the_one_that_is_made_anew(settings):
    assert find_page(settings) is None

    reading = read(settings)
    keep_page(reading, make_page(reading))
    kept = find_page(settings)
    shutil.rmtree(settings.folder / FOLDER)

    assert kept == make_page(read(settings))


def test_an_explanation_that_was_kept_is_the_one_that_is_printed(settings, capsys):
    explain(settings.path, as_json=True)
    first = capsys.readouterr().out
    assert find_explanation(settings) is None
    reading = read(settings)
    keep_page(reading, make_page(reading))

    assert json.loads(find_explanation(settings)) == json.loads(first)
    explain(settings.path, as_json=True)
    assert capsys.readouterr().out == first
    typed = ["tuner", "explain", str(settings.path), "--json"]
    script = f"import sys; from tuner.cli import main; sys.argv = {typed}"
    heavy = "print({'scipy', 'optuna', 'tuner.campaign'} & {*sys.modules}, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", f"{script}\ntry: main()\nfinally: {heavy}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == first
    assert done.stderr.strip() == "set()"


def test_another_study_file_has_another_page(settings):
    reading = read(settings)
    keep_page(reading, make_page(reading))
    assert find_page(settings) is not None

    settings.path.write_text(settings.path.read_text() + "constraints: [failure_rate <= 0.01]\n")

    assert find_page(load_study(settings.path)) is None


def test_while_a_study_runs_nothing_is_kept(settings):
    open_on_disk(settings, SimulatedHost().clock).remember(VERDICT, "")

    reading = read(settings)
    keep_page(reading, make_page(reading))

    assert reading.summary.state == "stopped"
    assert not (settings.folder / FOLDER).exists()


def test_of_a_study_whose_file_was_edited_nothing_is_kept(settings):
    settings.path.write_text(settings.path.read_text() + "content: /srv/www\n")
    edited = load_study(settings.path)

    reading = read(edited)
    keep_page(reading, make_page(reading))

    assert reading.changed
    assert find_page(edited) is None


def test_the_explanation_is_computed_once(settings):
    found = read(settings).summary.explanation
    kept = json.loads((settings.folder / FOLDER / EXPLANATION).read_bytes().partition(b"\n")[2])
    kept["gain"]["ratio"] = 1.2345

    keep(settings.folder, EXPLANATION, kept_key(settings), json.dumps(kept).encode())

    told = read(settings).summary.explanation
    assert told.gain.ratio == 1.2345
    assert told.settings == found.settings


HOSTILE = {
    "no JSON": lambda _: b"{",
    "another kind": lambda _: b"[]",
    "nested without end": lambda _: b"[" * 100_000,
    "a text for a number": lambda kept: json.dumps(kept | {"trials": "many"}).encode(),
    "no number": lambda kept: json.dumps(kept | {"gain": {"ratio": 0, "low": 0, "high": 0}}).encode(),
    "a setting that is none": lambda kept: json.dumps(
        kept | {"settings": [kept["settings"][0] | {"parameter": "<script>"}]}
    ).encode(),
}


def test_an_explanation_that_no_tuner_wrote_is_ignored(settings):
    found, key = read(settings).summary.explanation, kept_key(settings)
    kept = json.loads((settings.folder / FOLDER / EXPLANATION).read_bytes().partition(b"\n")[2])

    for name, harm in HOSTILE.items():
        keep(settings.folder, EXPLANATION, key, harm(kept))

        assert read(settings).summary.explanation == found, name


def test_a_page_that_was_changed_is_not_found(settings):
    reading = read(settings)
    keep_page(reading, make_page(reading))
    path = settings.folder / FOLDER / PAGE

    path.write_bytes(path.read_bytes() + b"<script>")

    assert find_page(settings) is None


def test_a_rejected_candidate_is_measured_again_or_tried_by_its_files(settings):
    reading = read(settings)
    found = Found(
        config=reading.summary.winner.config, speedup=Speedup(log_ratio=0.3, variance=0.01), reason="it fails"
    )
    rejected = replace(reading, summary=replace(reading.summary, winner=None, gain=None, found=found))

    assert [command for _, command in list_commands(rejected)] == [
        f"tuner compare {settings.path} default candidate",
        f"grep -sE 'apply:|undo:' {settings.folder}/exports/candidate/*",
    ]


def test_what_is_not_proven_is_measured_again_and_not_applied(settings):
    reading = read(settings)
    unproven = judge_pairs([(0.0, 0.0), (0.0, 0.113), (0.0, -0.03), (0.0, 0.06)])
    summary = replace(reading.summary, gain=unproven)
    needed = pairs_to_decide(unproven)

    assert (unproven.verdict, needed is not None) == ("not proven", True)
    assert [command for _, command in list_commands(replace(reading, summary=summary))] == [
        f"tuner compare {settings.path} default candidate --pairs {needed}"
    ]


def test_where_no_script_could_apply_it_the_exports_say_how(settings, monkeypatch, tmp_path):
    monkeypatch.setenv("TUNER_STATE", str(tmp_path / "state"))
    reading = read(settings)
    assert [command for _, command in list_commands(reading)][1:] == [
        "sh out/tuner-shell/apply.sh", "sh out/tuner-shell/undo.sh",
    ]  # fmt: skip

    remember_differences(reading, {"nginx": Rendered(default={MAIN: b"a 1;\n"}, winner={MAIN: b"a 2;\n"})})

    assert [command for _, command in list_commands(reading)] == [
        f"grep -sE 'apply:|undo:' {settings.folder}/exports/*"
    ]


def test_where_the_scripts_leave_something_to_the_hand_the_commands_say_so(settings, monkeypatch, tmp_path):
    monkeypatch.setenv("TUNER_STATE", str(tmp_path / "state"))
    reading = read(settings)
    kept = replace(of_nginx(b"sendfile on;\n", b"sendfile off;\n"), by_hand={"jit": "set it in php.ini"})
    assert "by hand" not in str(list_commands(reading))

    remember_differences(reading, {"nginx": kept})

    assert [title for title, _ in list_commands(reading)][1:] == [
        "Apply them on the server's host, then change the rest by hand",
        "Undo them, then change the rest back by hand",
    ]


def test_the_page_has_the_change_of_the_files_that_the_exports_write(settings, monkeypatch, tmp_path):
    monkeypatch.setenv("TUNER_STATE", str(tmp_path / "state"))
    reading = read(settings)
    assert 'data-copy="diff"' not in make_page(reading).decode()
    kept = {"nginx": of_nginx(b"sendfile on;\n", b"sendfile off;\n")}

    remember_differences(reading, kept)

    assert recall_differences(reading, reading.summary.winner.config) == kept
    page = make_page(read(settings)).decode()
    assert '<span class="file">+++ b/etc/nginx/nginx.conf</span>' in page
    assert '<span class="ins">+sendfile off;</span>' in page
    monkeypatch.setenv("TUNER_STATE", str(tmp_path / "state of another"))
    assert 'data-copy="diff"' not in make_page(read(settings)).decode()


def test_an_export_of_a_server_that_stays_as_it_is_says_so(settings, monkeypatch, tmp_path):
    monkeypatch.setenv("TUNER_STATE", str(tmp_path / "state"))
    reading = read(settings)
    remember_differences(reading, {"nginx": Rendered(default={}, winner={})})
    target = "target: {host: 'ssh://root@127.0.0.1:1', mode: managed}\n"
    settings.path.write_text(settings.path.read_text() + target)
    warned = []

    written = write_export(
        replace(reading, settings=load_study(settings.path)), "nginx", tmp_path / "out", warn=warned.append
    )

    assert written == []
    assert warned[-1] == "simulated: the winner changes nothing of nginx, so no file is written."
