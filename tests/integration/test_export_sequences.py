"""The shell export in any order: put, put back, killed at any command, edited between by somebody else."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from tests.integration.test_export_scripts import Script
from tests.more import leave_to_more

BEFORE: list[bytes | None] = [b"a 1;\n", None]
AFTER = [b"a 2;\n", b"b 2;\n"]
# Counts what the script begins, and kills it at one of these.
KILL = "set -T; trap '[ $((left -= 1)) != 0 ] || kill -9 $$' DEBUG\n"
HITS = st.one_of(st.just(0), st.integers(20, 70))
NAMES = ("apply.sh", "undo.sh")


class ExportedScripts(RuleBasedStateMachine):
    """One folder of configuration that a script changes; `in-force` is what the server has read of it."""

    def __init__(self) -> None:
        super().__init__()
        self._directory = tempfile.TemporaryDirectory(prefix="exported-")
        self.folder = Path(self._directory.name)
        (self.folder / "more").mkdir()
        check = ("cat", str(self.folder / "refuses"))
        self.script = Script(self.folder, BEFORE, AFTER, check=check, names=("a.conf", "more/b.conf"))
        self.refuses = False
        (self.folder / "refuses").touch()
        self.in_force = self.folder / "in-force"
        # A service that refuses its files does not start again.
        start = f"cat a.conf more/* > in-force 2> {os.devnull} || :"
        (self.folder / "tell").write_text(f"cd '{self.folder}'; rm in-force; cat refuses || exit; {start}")
        self.restart()
        self.foreign: dict[int, bytes] = {}
        self.mode = 0o640

    def teardown(self) -> None:
        self._directory.cleanup()

    def restart(self) -> None:
        self.in_force.write_bytes(b"".join(content or b"" for content in self.script.contents()))

    def call(self, name: str, kill_at: int, *options: str) -> int:
        environment: Mapping[str, str] = {}
        if kill_at:
            rules = self.folder / "kill"
            rules.write_text(f"left={kill_at}\n{KILL}")
            environment = {"BASH_ENV": str(rules)}
        argv = ["bash" if kill_at else "dash", str(self.folder / "tuner-shell" / name), *options]
        done = subprocess.run(
            argv, env={**os.environ, **environment}, capture_output=True, text=True, timeout=30, check=False
        )
        self.said = done.stderr
        return done.returncode

    @rule(name=st.sampled_from(NAMES), kill_at=HITS)
    def run(self, name: str, kill_at: int) -> None:
        wanted = AFTER if name == "apply.sh" else BEFORE
        there = self.script.contents()
        code = self.call(name, kill_at)
        if code == 0:
            assert self.script.contents() == wanted, "said that all is in place"
            assert self.is_in_force(), "said that all is in place, and the server has not read it"
            assert self.call(name, 0, "--check") == 0, self.said
            assert not list(self.folder.rglob(".tuner-new")), "something of the script is left"
        elif "Nothing was changed" in self.said:
            assert self.script.contents() == there
        elif code == -signal.SIGKILL:
            pass  # perhaps in the middle of it
        elif "restoring everything" in self.said and "left running" not in self.said:
            assert self.is_in_force(), "put everything back, and the server has not read it"
        self.look()

    @rule(name=st.sampled_from(NAMES))
    def check(self, name: str) -> None:
        wanted = AFTER if name == "apply.sh" else BEFORE
        there = self.script.contents()
        if self.call(name, 0, "--check") == 0:
            assert there == wanted
            assert self.is_in_force(), "says that all is in place, and the server has not read it"
        assert self.script.contents() == there

    @rule(number=st.sampled_from((0, 1)), content=st.sampled_from((b"c;\n", b"d;\n")))
    def edit(self, number: int, content: bytes) -> None:
        self.script.files[number].write_bytes(content)
        self.foreign[number] = content
        self.restart()

    @rule(number=st.sampled_from((0, 1)))
    def take_edit_back(self, number: int) -> None:
        if number in self.foreign:
            del self.foreign[number]
            before = BEFORE[number]
            if before is None:
                self.script.files[number].unlink()
            else:
                self.script.files[number].write_bytes(before)
            self.restart()

    @rule(mode=st.sampled_from((0o600, 0o644)))
    def chmod(self, mode: int) -> None:
        self.script.files[0].chmod(mode)
        self.mode = mode

    @rule()
    def refuse_or_accept(self) -> None:
        refused = self.folder / "refuses"
        self.refuses = not self.refuses
        if self.refuses:
            refused.unlink()
        else:
            refused.touch()

    def is_in_force(self) -> bool:
        assert self.in_force.exists(), "the server is down"
        return self.in_force.read_bytes() == b"".join(content or b"" for content in self.script.contents())

    def look(self) -> None:
        assert self.in_force.exists(), "the server is down"
        for number, content in enumerate(self.script.contents()):
            if number in self.foreign:
                assert content == self.foreign[number], "what somebody else wrote is gone"
            else:
                assert content in (BEFORE[number], AFTER[number]), "a file is neither as before nor as wanted"
        assert self.script.files[0].stat().st_mode & 0o777 == self.mode, "its mode is another one"


@pytest.mark.parametrize("most", leave_to_more([4, 15]))
def test_no_sequence_loses_an_edit_or_lies(most: int) -> None:
    run_state_machine_as_test(
        ExportedScripts,
        settings=settings(
            max_examples=most, stateful_step_count=8, deadline=None, derandomize=True, database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip
