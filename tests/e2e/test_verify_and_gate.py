"""`tuner verify` and `tuner gate` on real private servers, and their bad input."""

import json
from pathlib import Path

import pytest

from tests.e2e.command_line import CommandLine
from tests.e2e.traces import eventually, sysctls
from tests.finished_study import finish
from tests.testbed.processors import idle_processors_here
from tuner.study import load_study

LATE = "{parameters: {tcp_nodelay: {default: false}, tcp_nopush: {default: false}}}"
"""Header and file leave in two packets, the second after a delayed ACK: that costs most of the requests,
whatever the machine does besides."""
SPACE = f"nginx, sysctl-net, {{only: [tcp_nodelay, worker_connections, net.core.somaxconn]}}, {LATE}"
WINNER = {"tcp_nodelay": True, "worker_connections": 2000, "net.core.somaxconn": 5000}


def write(tuner: CommandLine, file: str = "study.yaml", **changes: object) -> Path:
    return tuner.write(file, **{"server": "nginx, sysctl", "space": SPACE, **changes})


@pytest.fixture
def study(tuner: CommandLine) -> Path:
    """A finished study whose winner is worth several times the default."""
    path = write(tuner)
    finish(load_study(path), WINNER)
    return path


def test_a_winner_that_runs_as_it_was_found_is_in_force(tuner: CommandLine, study: Path):
    before = sysctls()

    shown = tuner.run("verify", study, environment={"COLUMNS": "80"})
    told = json.loads(tuner.call("verify", study, "--json").stdout)

    assert shown.returncode == 0, shown.stderr
    assert "could be read back, in a fresh sandbox." in " ".join(shown.stdout.split())
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert "Machine and versions are those of the study." in shown.stdout
    assert told["verdict"] == "active"
    states = {each["name"]: (each["found"], each["state"]) for each in told["settings"]}
    assert states["net.core.somaxconn"] == (5000, "active")
    assert told["changed"] == []
    assert told["measured"] is None
    assert sysctls() == before
    eventually(lambda: not tuner.processes())
    assert not list((tuner.folder / "study.study").glob("comparisons/*"))


@pytest.mark.more
def test_what_has_changed_since_is_told_and_is_no_drift(tuner: CommandLine):
    path = write(tuner)
    old = {"kernel": "5.10.0-9", "servers": {"nginx": "1.18.0", "sysctl": "5.10.0"}, "cores": 64}
    finish(load_study(path), WINNER, surroundings=old)

    shown = tuner.run("verify", path, environment={"COLUMNS": "80"})
    told = json.loads(tuner.run("verify", path, "--json").stdout)

    assert shown.returncode == 0, shown.stderr
    assert "Since the study:" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert [each["what"] for each in told["changed"]] == ["CPUs", "kernel", "nginx"]
    assert "another release series" in told["changed"][2]["meaning"]


@pytest.mark.more
def test_the_gain_is_measured_anew_in_pairs(tuner: CommandLine, study: Path):
    with idle_processors_here() as through:
        done = tuner.run("verify", study, "--measure", "--pairs", "3", "--json", through=through)

    told = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert told["verdict"] == "holds"
    assert told["measured"]["gain"]["pairs"] == 3
    assert told["measured"]["gain"]["low"] > 1
    assert told["measured"]["second"]["trials"] == 3


@pytest.mark.more
def test_a_gate_fails_what_is_slower_and_passes_what_is_not(tuner: CommandLine, tmp_path: Path):
    study, values = write(tuner), tmp_path / "values.yaml"
    values.write_text("tcp_nodelay: true\n")
    exported = tmp_path / "tuner.json"
    exported.write_text(json.dumps({"study": "x", "settings": {"nginx": {"tcp_nodelay": True}}}))
    step = {"GITHUB_STEP_SUMMARY": str(tmp_path / "step.md"), "COLUMNS": "80"}
    (tmp_path / "step.md").write_text("before\n")

    with idle_processors_here() as through:
        slower = tuner.run(
            "gate", study, "--baseline", values, "--pairs", "3", "--summary", "gate.md", "--step-summary",
            environment=step, through=through,
        )  # fmt: skip
        passed = tuner.run(
            "gate", study, "--baseline", "default", "--new", exported, "--pairs", "3", "--json",
            through=through,
        )  # fmt: skip

    assert slower.returncode == 1, slower.stderr
    assert "default is slower than" in " ".join(slower.stdout.split())
    assert max(map(len, slower.stdout.splitlines())) <= 80
    written = (tmp_path / "gate.md").read_text()
    assert written.startswith("### ❌ test: default is slower than")
    assert (tmp_path / "step.md").read_text() == f"before\n{written}"
    assert passed.returncode == 0, passed.stderr
    told = json.loads(passed.stdout)
    assert (told["verdict"], told["baseline"]) == ("no slower", "default")
    assert told["changes"] == {"tcp_nodelay": [False, True]}


BUILD = """\
import http.server, sys, time
class Shop(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep({sleep_s})
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"shop")
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Shop).serve_forever()
"""
SHOP = """\
study: shop
servers: [nginx]
space: [nginx, {only: [worker_connections]}]
backend: {command: [python3, "{folder}/shop.py", "{port}"]}
load: {path: /, connections: 4}
budget: {preset: quick}
"""


@pytest.mark.more
def test_two_builds_of_an_application_are_two_study_files(tuner: CommandLine, tmp_path: Path):
    for name, sleep_s in (("old", 0.01), ("new", 0.2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "shop.py").write_text(BUILD.format(sleep_s=sleep_s))
        tuner.write(f"{name}/shop.yaml", SHOP)

    with idle_processors_here() as through:
        done = tuner.run(
            "gate", "new/shop.yaml", "--baseline", "old/shop.yaml", "--pairs", "3", "--json", through=through
        )

    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert (told["new"], told["baseline"]) == ("new/shop.yaml", "old/shop.yaml")
    assert told["gain"]["high"] < 0.97


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("verify", "study.yaml"), ("this storage has no study", "tuner run")),
        (("verify", "study.yaml", "--pairs", "4"), ("tuner measures nothing", "--measure")),
        (("verify", "study.yaml", "--measure", "--pairs", "1"), ("--pairs", "at least 2")),
        (("verify", "study.yaml", "--url", "http://x/"), ("--url", "--host")),
        (("gate", "study.yaml", "--baseline", "nowhere.yaml"), ("nowhere.yaml", "the file does not exist")),
        (("gate", "study.yaml", "--baseline", "cachd"), ("cachd", "cached")),
        (("gate", "study.yaml", "--baseline", "winner"), ("this storage has no study", "tuner run")),
        (("gate", "study.yaml", "--baseline", "study.yaml"), ("the study itself",)),
        (("gate", "study.yaml", "--baseline", "bad.yaml"), ("worker_conections", "worker_connections")),
        (("gate", "study.yaml", "--baseline", "default", "--margin", "60%"), ("60%", "50 %")),
        (("gate", "study.yaml", "--baseline", "default", "--margin", "some"), ("some", "3%")),
        (
            ("gate", "study.yaml", "--baseline", "default", "--step-summary"),
            ("GITHUB_STEP_SUMMARY", "--summary"),
        ),
        (("gate", "study.yaml", "--baseline", "more.yaml"), ("cannot be compared", "50 connections")),
    ],
)
def test_wrong_input_is_refused_with_value_and_remedy(tuner: CommandLine, arguments, words):
    tuner.write("study.yaml")
    tuner.write("more.yaml", name="more", connections=50)
    (tuner.folder / "bad.yaml").write_text("worker_conections: 1\n")

    refused = tuner.call(*arguments, environment={"GITHUB_STEP_SUMMARY": ""})

    assert refused.returncode == 2, refused.stderr
    assert refused.stdout == ""
    for word in words:
        assert word in refused.stderr
