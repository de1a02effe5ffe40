"""Completion in real shells, and the man page in real formatters."""

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.command_line import TUNER
from tests.integration.waiting import wait_until
from tests.more import leave_to_more
from tuner.cli import COMMANDS

EXIT_CODES = Path(__file__).parents[2] / "docs/exit-codes.md"
STUDY = "study: a\nservers: [nginx]\nspace: [nginx]\n"
TYPED = [
    ("tuner ada", {"adapters"}),
    ("tuner init ngi", {"nginx"}),
    ("tuner init --study nginx-20", {"nginx-2012", "nginx-2015"}),
    ("tuner init nginx --content im", {"images"}),
    ("tuner init nginx --backend ph", {"php-fpm"}),
    ("tuner export a.yaml --format js", {"json"}),
    ("tuner spaces apache-w", {"apache-worker"}),
    ("tuner sweep a.yaml worker_p", {"worker_processes"}),
    ("tuner compare a.yaml winner article-20", {"article-2015"}),
    ("tuner run a.yaml --preset qu", {"quick"}),
    ("tuner run --minut", {"--minutes"}),
]
BASH = """
source <(tuner completion bash)
words=($1)
COMP_WORDS=("${words[@]}"); COMP_CWORD=$((${#words[@]} - 1)); COMP_LINE=$1; COMP_POINT=${#1}
read -ra registered < <(complete -p tuner)
for ((i = 0; i < ${#registered[@]}; i++)); do
  [[ ${registered[i]} == -F ]] && "${registered[i + 1]}" tuner
done
printf '%s\\n' "${COMPREPLY[@]}"
"""
FISH = "tuner completion fish | source; complete -C $argv[1]"
ZSH = """
PROMPT=; autoload -Uz compinit; compinit -u -d $HOME/dump; source <(tuner completion zsh)
show() { print -r -- $BUFFER > $HOME/typed }; zle -N show; bindkey '^X' show; bindkey '^I' complete-word
: > $HOME/ready
"""


@pytest.fixture
def shell_folder(tmp_path: Path) -> Path:
    (tmp_path / "a.yaml").write_text(STUDY)
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    path = f"{TUNER.parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "HOME": str(folder), "TERM": "dumb", "XDG_CONFIG_HOME": str(folder)}


def ask(shell: list[str], typed: str, folder: Path) -> list[str]:
    ran = subprocess.run(
        [*shell, typed], cwd=folder, env=environment(folder), capture_output=True, text=True, check=True
    )
    assert ran.stderr == ""
    return ran.stdout.splitlines()


@pytest.mark.parametrize(("typed", "expected"), leave_to_more(TYPED, *TYPED[:2]))
def test_bash_completes(shell_folder: Path, typed: str, expected: set[str]):
    assert expected <= {*ask(["bash", "--norc", "-c", BASH, "bash"], typed, shell_folder)}


@pytest.mark.parametrize(("typed", "expected"), leave_to_more(TYPED))
def test_fish_completes(shell_folder: Path, typed: str, expected: set[str]):
    found = {line.partition("\t")[0] for line in ask(["fish", "-N", "-c", FISH], typed, shell_folder)}

    assert expected <= found


@pytest.mark.parametrize("typed", ["tuner sweep nothing.yaml wor", "tuner sweep a.yaml nothing"])
def test_what_cannot_be_known_completes_to_nothing(shell_folder: Path, typed: str):
    assert [line for line in ask(["bash", "--norc", "-c", BASH, "bash"], typed, shell_folder) if line] == []


def test_zsh_completes(shell_folder: Path):
    ours, theirs = pty.openpty()
    shell = subprocess.Popen(
        ["zsh", "-f", "-i"], cwd=shell_folder, env=environment(shell_folder),
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    try:
        (shell_folder / "setup").write_text(ZSH)
        os.write(ours, b". ./setup\n")
        wait_until((shell_folder / "ready").exists)
        os.write(ours, b"tuner init ngi\t\x18")
        wait_until((shell_folder / "typed").exists)
        wait_until(lambda: (shell_folder / "typed").read_text() != "")
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)
        os.close(theirs)

    assert (shell_folder / "typed").read_text().strip() == "tuner init nginx"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("man") / "tuner.1"
    with path.open("wb") as file:
        subprocess.run([TUNER, "man"], stdout=file, check=True)
    return path


@pytest.mark.parametrize(
    "formatter",
    [
        ("mandoc", "-T", "lint", "-W", "style"),
        ("groff", "-ww", "-man", "-T", "utf8", "-z"),
        ("man", "--warnings", "-E", "UTF-8", "-Tutf8", "-Z", "-l"),
    ],
    ids=lambda formatter: formatter[0],
)
def test_no_formatter_of_man_pages_complains(page: Path, formatter: tuple[str, ...]):
    ran = subprocess.run([*formatter, page], capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stdout
    assert ran.stderr == ""


def test_the_page_has_every_command_with_its_options_and_every_exit_code(page: Path):
    ran = subprocess.run(
        ["man", "-l", page], env={**os.environ, "MANWIDTH": "200"}, capture_output=True, text=True, check=True
    )
    shown = re.sub(r".\x08", "", ran.stdout)
    codes = re.findall(r"^\| (\d+) \|", EXIT_CODES.read_text().partition("\n## ")[0], re.MULTILINE)

    for command in COMMANDS:
        assert re.search(rf"^ +tuner {command.__name__} ", shown, re.MULTILINE)
    assert "tuner - finds the server and kernel settings" in shown
    assert "--confirm-within <str>" in shown
    assert re.findall(r"^ {7}(\d+) ", shown.partition("EXIT STATUS")[2], re.MULTILINE) == codes


def test_the_page_of_the_same_sources_is_the_same():
    told = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    first, second = (
        subprocess.run([TUNER, "man"], env=told, capture_output=True, check=True).stdout for _ in range(2)
    )

    assert first == second
    assert b'"2023-11-14"' in first
