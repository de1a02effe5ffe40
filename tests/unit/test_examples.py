"""The examples beside the documents: jobs for CI and units of systemd, whose commands are real ones."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
import yaml

from tests.e2e.command_line import TUNER
from tuner.cli import app

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs/examples"
SHOWN = [ROOT / "docs/verify.md", ROOT / "docs/ci-gate.md", *sorted(EXAMPLES.rglob("*.*"))]
COMMAND = re.compile(
    r"(?:^|[/ ])tuner((?: +-{1,2}[a-z]+)* +(?:verify|gate|check|run|worker|apply|confirm) .*)$"
)


def list_texts(data: object) -> Iterator[str]:
    """Yield every text in a YAML file."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict | list):
        for each in data.values() if isinstance(data, dict) else data:
            yield from list_texts(each)


def list_commands(path: Path) -> list[list[str]]:
    """Return the commands of tuner that a file holds, each as its arguments."""
    text = path.read_text()
    if path.suffix == ".yaml":
        text = "\n".join(list_texts(yaml.safe_load(text)))
    lines = [
        line.removeprefix("ExecStart=")
        for line in text.replace("\\\n", "").splitlines()
        if not line.startswith("#")
    ]
    found = (COMMAND.search(line.strip()) for line in lines)
    return [shlex.split(each[1], comments=True) for each in found if each]


def parse(arguments: list[str]) -> None:
    """Let the command line read its arguments, and do nothing."""
    group = typer.main.get_command(app)
    with group.make_context("tuner", arguments) as context:
        name, command, rest = group.resolve_command(context, [*context._protected_args, *context.args])
        command.make_context(name, rest, parent=context)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("verify.md", 4),
        ("ci-gate.md", 5),
        ("github-actions.yaml", 1),
        ("gitlab-ci.yaml", 2),
        ("tuner-verify.service", 1),
        ("tuner-worker@.service", 1),
        ("compose.yaml", 3),
        ("kubernetes.yaml", 1),
    ],
)
def test_commands_of_the_examples_are_real_ones(name: str, count: int):
    (path,) = (each for each in SHOWN if each.name == name)
    commands = list_commands(path)

    assert len(commands) == count
    for arguments in commands:
        parse(arguments)


def test_what_reads_them_refuses_an_option_that_is_none():
    with pytest.raises(Exception, match="No such option: --margins"):
        parse(["gate", "web.yaml", "--baseline", "old.yaml", "--margins", "3%"])


def test_jobs_have_what_their_services_ask_for():
    github = yaml.safe_load((EXAMPLES / "github-actions.yaml").read_text())
    gitlab = yaml.safe_load((EXAMPLES / "gitlab-ci.yaml").read_text())

    # YAML 1.1 takes the key `on` for true.
    assert github[True] == "pull_request"
    (job,) = github["jobs"].values()
    assert job["runs-on"]
    assert all({"run", "uses"} & step.keys() for step in job["steps"])
    (job,) = gitlab.values()
    assert job["script"]
    assert job["allow_failure"] == {"exit_codes": 6}


def test_the_baseline_of_a_merge_request_is_there_again_in_the_next_job(tmp_path: Path):
    gitlab = yaml.safe_load((EXAMPLES / "gitlab-ci.yaml").read_text())
    (line,) = (each for each in gitlab["no-slower"]["before_script"] if "worktree" in each)
    person = "-c user.name=a -c user.email=a@example.org"
    made = f"git init -q\necho one > web.yaml\ngit add .\ngit {person} commit -qm one"
    # Between two jobs a runner removes what is not in the repository, and keeps what git knows of it.
    jobs = f"export CI_MERGE_REQUEST_DIFF_BASE_SHA=HEAD\n{line}\ngit clean -ffdxq\n{line}"

    ran = subprocess.run(["sh", "-ec", f"{made}\n{jobs}"], cwd=tmp_path, capture_output=True, check=False)

    assert ran.returncode == 0, ran.stderr
    (command,) = (each for each in gitlab["no-slower"]["script"] if " gate " in each)
    (baseline,) = re.findall(r"--baseline (\S+)", command)
    assert (tmp_path / baseline).read_text() == "one\n"


@pytest.mark.parametrize(
    ("units", "line"),
    [("tuner-verify.*", "Type=oneshot"), ("fleet/tuner-worker@.service", "Restart=always")],
)
def test_systemd_accepts_the_units(units: str, line: str, tmp_path: Path):
    for path in sorted(EXAMPLES.glob(units)):
        # The command is where this checkout has it.
        command = re.sub(r"(?<=^ExecStart=)\S+(?= )", str(TUNER), path.read_text(), flags=re.MULTILINE)
        (tmp_path / path.name).write_text(command)
    written = sorted(tmp_path.iterdir())

    assert written
    assert verify_units(*written) == (0, "")

    written[0].write_text(written[0].read_text().replace(line, f"{line}-or-so"))
    assert "-or-so" in verify_units(written[0])[1]


def verify_units(*paths: Path) -> tuple[int, str]:
    checked = subprocess.run(
        ["systemd-analyze", "verify", *map(str, paths)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    return checked.returncode, checked.stderr


def test_each_worker_of_the_composition_has_a_host_of_its_own():
    services = yaml.safe_load((EXAMPLES / "fleet/compose.yaml").read_text())["services"]
    scheduler = services.pop("scheduler")
    commands = [service["command"] for service in services.values()]
    hosts = [found[1] for command in commands if (found := re.search(r"--target (\S+)", command))]

    assert len(hosts) == len(set(hosts)) == 2
    assert all("tcp://scheduler:8786" in command for command in commands)
    assert all("scheduler" in service["depends_on"] for service in services.values())
    assert scheduler["command"] == "dask scheduler"
