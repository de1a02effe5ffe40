"""Optuna's dashboard on a study: what a browser shows, and what is refused."""

import csv
import http.client
import io
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.command_line import CommandLine
from tests.integration.browser import open_browser
from tests.integration.waiting import wait_until
from tests.testbed.processors import idle_processors_here

pytestmark = pytest.mark.more

TUNER = Path(sys.executable).with_name("tuner")
SHOWN = """
new Promise((resolve) => {
  const look = () => {
    const text = document.body.textContent;
    const isThere = text.includes("speedup") && /sendfile|open_file|worker_/.test(text);
    isThere ? resolve(text) : setTimeout(look, 100);
  };
  look();
})
"""


COUNT = "fetch('/api/studies/0?after=0').then((found) => found.json()).then((study) => study.trials.length)"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[CommandLine, subprocess.Popen[str]]]:
    """A study of nginx in which the first trial was measured, and the run that resumes it."""
    with idle_processors_here() as through:
        tuner = CommandLine(tmp_path_factory.mktemp("dashboard"), through=through)
        run = tuner.start("run", tuner.write(connections=20), "--preset", "quick", "--minutes", "5")
        try:
            wait_until(lambda: tuner.run("show", "study.yaml", "--csv").returncode == 0, patience_s=60)
            yield tuner, run
        finally:
            run.terminate()
            run.communicate(timeout=60)


@pytest.fixture(scope="module")
def served(running: tuple[CommandLine, subprocess.Popen[str]]) -> Iterator[tuple[CommandLine, str]]:
    """The study, and the address of a dashboard on it."""
    tuner, _ = running
    command = [TUNER, "dashboard", tuner.folder / "study.yaml", "--port", "0", "--json"]
    # As a script starts it in the background, with SIGINT ignored.
    dashboard = subprocess.Popen(
        ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command], stdout=subprocess.PIPE
    )
    try:
        assert dashboard.stdout is not None
        text = "".join(dashboard.stdout.readline().decode() for _ in range(3))
        yield tuner, json.loads(text)["url"]
    finally:
        dashboard.send_signal(signal.SIGINT)
        dashboard.communicate(timeout=30)
        assert dashboard.returncode == 0


def ask(url: str, method: str, path: str, host: str = "127.0.0.1", cookie: str = "") -> tuple[int, bytes]:
    """Ask for a path as whoever opened the printed address, or with another cookie."""
    port = port_of(url)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    known = f"other=1; tuner-x={urlsplit(url).query.partition('=')[2]}"
    connection.request(method, path, headers={"Host": f"{host}:{port}", "Cookie": cookie or known})
    response = connection.getresponse()
    return response.status, response.read()


def port_of(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port


def test_other_users_of_the_machine_who_reach_the_port_read_nothing(served):
    _, url = served

    for cookie in ("tuner-x=guessed", "tuner-x=", "="):
        status, said = ask(url, "GET", "/api/studies", cookie=cookie)
        assert (status, said) == (403, b"Open the address that `tuner dashboard` printed.\n")
    assert ask(url, "GET", "/api/studies")[0] == 200
    assert ask(url, "GET", url.partition(str(port_of(url)))[2], cookie="other=1")[0] == 303


def test_a_browser_shows_settings_and_objective_under_their_names_while_the_study_runs(
    running, served, tmp_path: Path
):
    (_, run), (_, url) = running, served
    with open_browser(tmp_path) as page:
        page.go(url, width=1280)
        page.evaluate(SHOWN)
        shown = page.evaluate(COUNT)
        wait_until(lambda: page.evaluate(COUNT) > shown, patience_s=60)
        assert run.poll() is None

        elsewhere = [
            each for each in page.requests if not each.startswith((url.partition("/dash")[0], "data:"))
        ]
        assert elsewhere == []


def test_the_study_is_told_with_its_roles(running, served):
    (_, run), (tuner, url) = running, served
    run.terminate()
    run.communicate(timeout=60)
    tuner.run("run", "study.yaml", "--preset", "quick", "--minutes", "0.4", "--trials", "4")
    status, body = ask(url, "GET", "/api/studies/0?after=0")

    assert status == 200
    trials = json.loads(body)["trials"]
    trials_shown = list(csv.DictReader(io.StringIO(tuner.run("show", "study.yaml", "--csv").stdout)))
    of_load = [each for each in trials_shown if each["role"] not in {"robustness", "latency"}]
    assert len(trials) == len(of_load)
    roles = [each["value"] for trial in trials for each in trial["user_attrs"] if each["key"] == "role"]
    assert [each.strip('"') for each in roles] == [each["role"] for each in of_load]
    status, body = ask(url, "GET", "/api/studies/0/param_importances")
    explained = json.loads(tuner.run("explain", "study.yaml", "--json").stdout)
    assert status == 200
    (weighed,) = json.loads(body)["param_importances"]
    assert {each["name"] for each in weighed} <= {each["parameter"] for each in explained["settings"]}


@pytest.mark.parametrize("method", ["DELETE", "POST", "PUT"])
def test_nothing_can_be_changed(served, method: str):
    tuner, url = served
    before = (tuner.folder / "study.study/study.db").read_bytes()

    status, _ = ask(url, method, "/api/studies/0")

    assert status == 405
    assert (tuner.folder / "study.study/study.db").read_bytes() == before


def test_a_page_that_took_another_name_reads_nothing(served):
    _, url = served

    assert ask(url, "GET", "/api/studies", host="evil.example")[0] == 403


def test_a_port_that_is_taken_and_a_study_that_has_not_begun_are_said(served):
    tuner, url = served
    port = port_of(url)

    taken = tuner.run("dashboard", "study.yaml", "--port", port)
    tuner.write("other.yaml", name="other")
    not_begun = tuner.run("dashboard", "other.yaml", "--port", "0")

    assert taken.returncode == 3
    assert f"--port: tuner cannot listen on 127.0.0.1:{port}" in taken.stderr
    assert not_begun.returncode == 2
    assert "Start the study with `tuner run`" in not_begun.stderr
