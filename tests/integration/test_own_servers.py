"""Servers that a study describes by templates and commands, with real programs and with stand-ins."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.waiting import wait_until
from tuner.campaign.prepare import Setup, prepare
from tuner.commands.template import write_study
from tuner.deploy.sandbox import Deadlines, SandboxTarget
from tuner.errors import ConfigRejected, Crashed, NotEffective, TargetError
from tuner.ports import Config
from tuner.space import Space
from tuner.study import load_study

ROOT = Path(__file__).parents[2]
PLAIN: Config = {"workers": 3, "fast": False}
EXAMPLES = ROOT / "search_spaces/examples"
STAND_INS = Path(__file__).parent / "stand_ins"
PART = re.compile(r"^`(?P<path>[\w./-]+)`:\n\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
SPACE = """
space: own
server: command
parameters:
  workers: {kind: int, low: 1, high: 9, default: 2, why: w., source: s}
  fast: {kind: bool, default: false, why: w., source: s}
"""
SERVER = """
import os, socket, sys, time
workers = dict(line.split("=") for line in open(sys.argv[1]).read().split())["workers"]
if workers == "9":
    sys.exit("error: no room for 9")
# Two that leave their parent's session and group, as daemons do.
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", sys.argv[3]])
listener = socket.create_server(("127.0.0.1", int(sys.argv[2])))
while True:
    connection, _ = listener.accept()
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 3\\r\\nConnection: close\\r\\n\\r\\nown")
    connection.close()
"""


def prepared(path: Path) -> tuple[Setup, SandboxTarget]:
    setup = prepare(load_study(path))
    assert isinstance(setup.target, SandboxTarget)
    return setup, replace(setup.target, deadlines=Deadlines(listen_s=5.0, stop_s=0.5))


@pytest.fixture
def own(tmp_path: Path) -> Callable[..., SandboxTarget]:
    """Return the target of a study of a small server of its own."""
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "settings.j2").write_text("workers={{ settings.workers }}\nfast={{ settings.fast|int }}\n")
    (tmp_path / "own.yaml").write_text(SPACE)
    www = tmp_path / "www"
    www.mkdir()
    (www / "index.html").write_text("own")

    def make(more: str = "read_back: [cat, '{directory}/settings']") -> SandboxTarget:
        command = (
            f"[{sys.executable}, '{{folder}}/server.py', '{{directory}}/settings', '{{port}}', '{tmp_path}']"
        )
        (tmp_path / "study.yaml").write_text(
            f"study: own\nservers: [{{name: command, template: settings.j2, start: {command}, {more}}}]\n"
            f"space: [./own.yaml]\ncontent: {www}\nload: {{path: /index.html, keepalive: false}}\n"
        )
        return prepared(tmp_path / "study.yaml")[1]

    return make


def processes_with(word: str) -> list[int]:
    """Find the processes of this machine that have a word in their command line."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in each.read_bytes().split(b"\0"):
                found.append(int(each.parent.name))
        except OSError:  # it has ended
            continue
    return found


def test_what_it_started_ends_with_the_start_whatever_it_did_to_get_away(own, tmp_path):
    with own().deploy({"workers": 3, "fast": True}) as deployment:
        assert deployment.effective == {"workers": 3, "fast": True}
        wait_until(lambda: len(processes_with(str(tmp_path))) >= 3)

    wait_until(lambda: not processes_with(str(tmp_path)))


def test_what_is_in_force_is_compared_with_what_was_asked(own):
    other = own('read_back: [echo, \'{"workers": 2, "fast": false}\']')

    with (
        pytest.raises(NotEffective, match="workers: 3 was requested, 2 is active"),
        other.deploy(PLAIN),
    ):
        pass


def test_a_value_of_which_nothing_is_said_is_not_measured(own):
    with (
        pytest.raises(NotEffective, match="read_back gives no value of fast"),
        own("read_back: [echo, workers=3]").deploy(PLAIN),
    ):
        pass


def test_a_check_that_refuses_is_quoted(own):
    refusing = own("check: [sh, -c, 'echo too many workers; exit 1', '{directory}/settings']")

    with (
        pytest.raises(ConfigRejected, match="command: the configuration is refused: too many workers"),
        refusing.deploy(PLAIN),
    ):
        pass


def test_its_last_words_explain_why_it_ended(own):
    with (
        pytest.raises(Crashed, match="command: it ended by itself with status 1: error: no room for 9"),
        own().deploy({"workers": 9, "fast": False}),
    ):
        pass


def test_a_configuration_that_its_template_lacks_is_a_failed_start(own, tmp_path):
    (tmp_path / "settings.j2").write_text("workers={{ settings.workers }}\nx={{ settings.slow }}\n")

    # The study's own template has been read again.
    with (
        pytest.raises(ConfigRejected, match=r"template of settings, line 2: .*'slow'"),
        own().deploy(PLAIN),
    ):
        pass


def test_it_is_asked_to_end_and_not_waited_for_any_longer_than_it_may_take(own, tmp_path):
    told = tmp_path / "told"
    stopping = own(f"stop: [sh, -c, 'echo asked >{told}; sleep 600.5']")

    with stopping.deploy(PLAIN):
        assert not told.exists()

    assert told.read_text() == "asked\n"
    assert not processes_with("600.5")


def test_a_program_that_is_not_there_is_named(own):
    with pytest.raises(TargetError, match="no-such-program"), own("check: [no-such-program]").deploy(PLAIN):
        pass


def test_files_of_the_machine_are_only_read(own):
    writing = own("check: [touch, /etc/own-server, /usr/own-server]")

    with pytest.raises(ConfigRejected, match="Read-only file system"), writing.deploy(PLAIN):
        pass

    assert not Path("/etc/own-server").exists()


def test_the_example_of_a_new_study_takes_any_program_and_the_page_that_it_serves(tmp_path):
    (tmp_path / "settings").write_text("workers=2\n")
    (tmp_path / "server.py").write_text(SERVER)
    study = write_study("command", tmp_path / "app.yaml")
    program = f"{sys.executable}, '{{folder}}/server.py', '{{folder}}/settings', '{{port}}'"
    own = f"start: [{program}, '{{folder}}/{{workers}}']"
    text = re.sub("^    start: .*$", f"    {own}", study.read_text(), flags=re.MULTILINE)
    study.write_text(text.replace("keepalive: true", "keepalive: false"))

    with prepared(study)[1].deploy({"workers": 2}) as deployment:
        assert deployment.load.body_bytes == len("own")
        wait_until(lambda: len(processes_with(f"{tmp_path}/2")) >= 3)


# ------------------------------------------------------------------------------------------- worked examples


def ends(space: Space) -> Iterator[Config]:
    """Yield the default, and the lowest and the highest value of every parameter alone."""
    yield space.default()
    for each in space.dimensions:
        for value in each.choices or (each.low, each.high):
            yield space.decode({each.name: value})


@pytest.fixture
def written_down(tmp_path: Path) -> Path:
    """Write the files of docs/own-servers.md."""
    for part in PART.finditer((ROOT / "docs/own-servers.md").read_text()):
        (tmp_path / part["path"]).write_text(part["text"])
    return tmp_path / "own.yaml"


def test_the_server_of_the_page_starts_and_has_every_value_in_force(written_down):
    setup, target = prepared(written_down)

    for config in ends(setup.space):
        with target.deploy(config) as deployment:
            assert deployment.effective == setup.space.for_server(config, "command")


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Put a program of the stand-ins on the PATH, under the name of the real one."""

    def put(name: str, file: str, **environment: Path) -> str:
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        words = [*(f"{key}={value}" for key, value in environment.items()), sys.executable, STAND_INS / file]
        program.write_text(f'#!/bin/sh\nexec env {shlex.join(map(str, words))} "$@"\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        return str(program)

    return put


def copy_example(name: str, to: Path) -> Path:
    """Copy an example and let all of its parameters be tuned; return its study."""
    study = Path(shutil.copytree(EXAMPLES / name, to / name)) / "study.yaml"
    every = f"space: [./{name}.yaml, {{allow: [semantic]}}]"
    study.write_text(study.read_text().replace(f"space: [./{name}.yaml]", every))
    return study


@pytest.mark.more
def test_the_example_of_tux_is_taken_by_its_stand_in_at_every_end(tmp_path, stand_in):
    kernel = tmp_path / "kernel"
    subprocess.run([stand_in("tux", "tux.py", KERNEL=kernel), "make"], check=True)
    study = copy_example("tux", tmp_path)
    # The stand-in shows its settings elsewhere than the kernel.
    shown = f"[env, 'TUX={kernel}/settings', 'TUX_LISTEN={kernel}/listen', sh, "
    study.write_text(study.read_text().replace("[sh, ", shown))

    setup, target = prepared(study)
    for config in ends(setup.space):
        with target.deploy(config) as deployment:
            assert deployment.effective == setup.space.for_server(config, "command")
            assert (kernel / "listen/0/listen/0").read_text() == "http://0.0.0.0:8080\n"
    assert (kernel / "stopped").exists()


@pytest.mark.more
def test_the_example_of_iis_is_taken_by_its_stand_in_at_every_end(tmp_path, stand_in):
    page = tmp_path / "page"
    stand_in("ssh", "windows_ssh.py", WINDOWS=tmp_path / "windows.json", PAGE=page)

    setup, target = prepared(copy_example("iis", tmp_path))
    page.write_bytes(target.content.body or b"")
    for config in ends(setup.space):
        with target.deploy(config) as deployment:
            assert deployment.effective == setup.space.for_server(config, "command")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Set-WebConfigurationProperty -Filter 'x' -Name 'y' -Value 1", "powershell: error: Set-Web"),
        ("Remove-Item C:\\", "powershell: error: Remove-Item"),
    ],
)
def test_the_stand_in_of_windows_takes_no_other_command(tmp_path, stand_in, line, message):
    program = stand_in("ssh", "windows_ssh.py", WINDOWS=tmp_path / "windows.json", PAGE=tmp_path / "page")
    run = ("administrator@iis", "powershell", "-NoProfile", "-NonInteractive", "-Command", "-")

    refused = subprocess.run([program, *run], input=line, text=True, capture_output=True, check=False)

    assert refused.returncode == 1
    assert message in refused.stderr
