"""What the remote shell does with input that did not arrive whole, or for which there is no room."""

import subprocess
from pathlib import Path

import pytest

from tuner.adapters.hosts.ssh import shell

FUNCTIONS = Path(shell.__file__).with_name("shell.sh")
SCRIPT = """
target=$1
. "$0"
tuner_broken=
{ %s && tuner_run 5 4096 "$tuner_directory/in" '' cp cp /dev/stdin "$target"; }
{ tuner_run 5 4096 /dev/null '' touch touch "$target" || [ -z "$tuner_broken" ]; } && echo went-on
tuner_end
"""


def ask(receive: str, target: Path, sent: bytes) -> bytes:
    script = ["sh", "-c", SCRIPT % receive, str(FUNCTIONS), str(target)]
    return subprocess.run(script, input=sent, capture_output=True, timeout=20, check=False).stdout


def test_what_arrived_whole_becomes_a_file(tmp_path: Path):
    said = ask("tuner_receive 20", tmp_path / "file", b"x" * 20)

    assert said.endswith(b"went-on\n")
    assert (tmp_path / "file").read_bytes() == b"x" * 20


@pytest.mark.parametrize("receive", ["tuner_receive 100", "tuner_directory=/proc; tuner_stdin text"])
def test_after_input_that_is_not_whole_nothing_is_run(tmp_path: Path, receive: str):
    said = ask(receive, tmp_path / "file", b"x" * 20)

    assert said == b"full\n"
    assert not (tmp_path / "file").exists()
