"""The sudoers file: what the real visudo takes, and what sudo then allows."""

import subprocess
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import pytest

from tuner.adapters.hosts.local import LocalHost
from tuner.errors import TargetError
from tuner.hosts.sudoers import write_sudoers
from tuner.kit.services import describe_service
from tuner.ports import Command, Completed
from tuner.testing.fakes import completed

CATALOGUE = (
    ("sh", "/var/lib/tuner/keeper"),
    ("tail", "--bytes=65536", "--", "/var/log/nginx/error.log"),
    ("cat", "--", "/run/with space/a,b:c=d/nginx*.pid"),
)


def check(text: str, tmp_path: Path) -> str:
    path = tmp_path / "sudoers"
    path.write_text(text)
    path.chmod(0o440)
    done = subprocess.run(["/usr/sbin/visudo", "-cf", path], capture_output=True, text=True, check=False)
    return done.stderr + done.stdout if done.returncode else ""


def test_visudo_takes_the_file(tmp_path: Path):
    assert check(write_sudoers(LocalHost(), "deploy", CATALOGUE), tmp_path) == ""


def test_a_daemon_without_unit_and_init_script_may_be_stopped(tmp_path: Path):
    nowhere = [completed(("test",), returncode=1)] * 5
    service = describe_service(
        "nginx", nowhere, check=("nginx", "-t"), start=("nginx",), reload=None, title="nginx: master process",
        pid_file=PurePosixPath("/run/nginx.pid"),
    )  # fmt: skip
    assert service.stop[0] == "sh"

    assert check(write_sudoers(LocalHost(), "deploy", [service.stop]), tmp_path) == ""


def test_programs_have_their_whole_path_and_nothing_is_a_wildcard():
    text = write_sudoers(LocalHost(), "deploy", CATALOGUE)

    assert "/tail --bytes\\=65536 -- /var/log/nginx/error.log" in text
    assert r"/run/with\ space/a\,b\:c\=d/nginx\*.pid" in text


def test_only_what_is_open_ended_may_have_other_arguments():
    text = write_sudoers(LocalHost(), "deploy", CATALOGUE[1:], open_ended=CATALOGUE[:1])

    assert text.rstrip().endswith("/sh /var/lib/tuner/keeper *")
    assert text.count("*") == 2


@pytest.mark.parametrize(
    "user", ["", "ALL=", "%wheel", "+net", "a b", "root\nALL", "-x", "é", "a,b", "#0", 'a"b', "a!"]
)
def test_what_is_no_user_name_is_refused(user: str):
    with pytest.raises(TargetError, match="cannot contain the user name"):
        write_sudoers(LocalHost(), user, CATALOGUE)


@pytest.mark.parametrize("word", ["a\nALL ALL=(ALL) ALL", 'a"b', "a\0b", "\x1b[31m", "", "^a", " a", "a "])
def test_what_a_sudoers_file_cannot_hold_is_refused(word: str):
    with pytest.raises(TargetError, match="a sudoers file cannot contain"):
        write_sudoers(LocalHost(), "deploy", [("cat", word)])


def test_a_program_that_is_not_there_is_named():
    with pytest.raises(TargetError, match="the program 'no-such-program' is missing"):
        write_sudoers(LocalHost(), "deploy", [("cat",), ("no-such-program",)])


def test_a_command_without_arguments_may_have_none():
    text = write_sudoers(LocalHost(), "deploy", [("cat",)])

    assert text.endswith('/cat ""\n')


@pytest.mark.parametrize("place", ["cat", "/bin/cat, /bin/sh", "/bin/c*t", "/bin/cat ALL", "/bin/#"])
def test_what_the_host_says_of_a_program_is_a_path_or_refused(place: str):
    class Lying(LocalHost):
        def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
            return tuple(completed(each.argv, stdout=place.encode()) for each in commands)

    with pytest.raises(TargetError, match="the path of 'cat'"):
        write_sudoers(Lying(), "deploy", [("cat", "a")])
