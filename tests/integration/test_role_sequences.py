"""The exported role of Ansible in any order: put, put back, killed at any task, edited by others between."""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from tests.integration.exported import put
from tests.integration.random_winners import WINNERS
from tests.integration.waiting import wait_until
from tests.testbed.bed import Testbed
from tests.testbed.host import TestHost
from tests.testbed.namespaces import processes_of
from tests.unit.simulated_study import make_summary
from tuner.export import Rewritten, export
from tuner.ports import Service

pytestmark = pytest.mark.more

WEB = "/srv/web"
FILES = (f"{WEB}/a.conf", f"{WEB}/more/b.conf")
BEFORE: list[bytes | None] = [b"a 1;\n", None]
AFTER: list[bytes | None] = [b"a 2;\n", b"b 2;\n"]
SETTING = "/proc/sys/net/core/somaxconn"
OLD, NEW, FOREIGN = b"4096\n", b"5000\n", b"1111\n"
# What it has read is in `in-force`, as long as it runs. It starts only with what its check accepts, and with
# `fails` not with a new file.
SERVICE = f"""\
#!/bin/sh
cd {WEB}
case $1 in
  start)
    sh /srv/check || exit 1
    [ ! -e fails ] || ! grep -q 2 a.conf || exit 1
    cat {SETTING} a.conf more/* > in-force 2> /dev/null || :
    ;;
  stop) rm -f in-force ;;
  restart) "$0" stop; "$0" start ;;
  status) [ -e in-force ] && echo running || {{ echo stopped; exit 3; }} ;;
esac
"""
CHECK = f"""\
cd {WEB} && [ -e accepts ] && {{ [ ! -e refuses-new ] || ! grep -q 2 a.conf; }}
"""
# Kills the whole play at a task of a name, or at one of a number: tasks and what their loops have done count.
PLUGIN = """\
import os, signal
from ansible.plugins.callback import CallbackBase

class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "kill_at"
    at = os.environ["KILL_AT"]
    count = 0

    def v2_playbook_on_task_start(self, task, is_conditional):
        self.come_to(task.name)

    def v2_runner_item_on_ok(self, result):
        self.come_to("an item")

    def come_to(self, name):
        self.count += 1
        if self.at in (name, str(self.count)):
            os.killpg(0, signal.SIGKILL)
"""
KILLS = st.one_of(st.just(""), st.integers(14, 40))
NAMES = st.sampled_from(("apply", "undo"))
RECAP = re.compile(r"changed=(\d+) .*failed=(\d+)")


class ExportedRole(RuleBasedStateMachine):
    """One service of which a play changes two files, and a setting of the kernel."""

    host: ClassVar[TestHost]

    def __init__(self) -> None:
        super().__init__()
        self.host.run(["rm", "-rf", WEB, "/run/tuner-unfinished", "/etc/sysctl.d/99-tuner.conf"])
        self.files = [self.host.root / path[1:] for path in FILES]
        self.files[1].parent.mkdir(parents=True)
        self.files[0].write_bytes(BEFORE[0] or b"")
        self.mode = 0o640
        self.files[0].chmod(self.mode)
        self.value(OLD)
        (self.host.root / "srv/web/accepts").touch()
        self.foreign: dict[int, bytes] = {}
        self.foreign_value: bytes | None = None
        self.service("start")

    def contents(self) -> list[bytes | None]:
        return [file.read_bytes() if file.exists() else None for file in self.files]

    def value(self, wanted: bytes | None = None) -> bytes:
        """Return the setting, or set it."""
        if wanted is None:
            return self.host.run(["cat", SETTING]).stdout
        self.host.run(["tee", SETTING], stdin=wanted)
        return wanted

    def service(self, verb: str) -> None:
        self.host.run(["service", "web", verb], check=False)

    def is_in_force(self) -> bool:
        found = self.host.root / "srv/web/in-force"
        return found.exists() and found.read_bytes() == b"".join(
            [self.value(), *(content or b"" for content in self.contents())]
        )

    def play(self, name: str, kill_at: object = "", *options: str) -> tuple[int, int]:
        """Play it on the host itself; return how it ended, and how many tasks changed something."""
        environment = (
            "LC_ALL=C.UTF-8", "ANSIBLE_PIPELINING=1", "ANSIBLE_CALLBACK_PLUGINS=/srv/plugins",
            f"KILL_AT={kill_at}",
        )  # fmt: skip
        argv = (
            "ansible-playbook", "--inventory=web,", "--connection=local", "--extra-vars=ansible_become=false",
            *options, f"/srv/tuner-ansible/{name}.yml",
        )  # fmt: skip
        # A session of its own, as all in its group is killed.
        done = self.host.run(["env", *environment, "setsid", "--wait", *argv], check=False)
        wait_until(lambda: not self.is_at_work())
        self.said = done.stdout.decode() + done.stderr.decode()
        recap = RECAP.search(self.said)
        return done.returncode, int(recap[1]) if recap else -1

    def is_at_work(self) -> bool:
        """Say whether something of a play that was killed still runs."""
        commands = (Path(f"/proc/{pid}/cmdline") for pid in processes_of(self.host.pid))
        return any(b"nsible" in each.read_bytes() for each in commands if each.exists())

    @rule(name=NAMES, kill_at=KILLS)
    def run(self, name: str, kill_at: object) -> None:
        wanted, left = (AFTER, BEFORE) if name == "apply" else (BEFORE, AFTER)
        value, old_value = (NEW, OLD) if name == "apply" else (OLD, NEW)
        there = self.contents(), self.value()
        ran = self.runs()
        code, _ = self.play(name, kill_at)
        if code == 0:
            assert (self.contents(), self.value()) == (wanted, value), (
                f"said that all is in place\n{self.said}"
            )
            assert self.is_in_force(), (
                f"said that all is in place, and the service has not read it\n{self.said}"
            )
            assert not list((self.host.root / "run/tuner-unfinished").glob("*"))
            assert self.play(name) == (0, 0), f"a second play changes something\n{self.said}"
        elif "nothing was changed" in self.said:
            assert (self.contents(), self.value()) == there, self.said
        elif "Everything was restored" in self.said:
            assert (self.contents(), self.value()) == (left, old_value), self.said
            assert self.is_in_force(), (
                f"said that all was put back, and the service has not read it\n{self.said}"
            )
        elif "was left running" in self.said:
            assert self.contents() == left, self.said
        elif not kill_at:
            assert "fatal" in self.said, self.said
        may_fall = "PLAY RECAP" not in self.said or (self.host.root / "srv/web/fails").exists()
        assert not ran or self.runs() or may_fall, f"the service is down\n{self.said}"
        self.look()

    def runs(self) -> bool:
        return (self.host.root / "srv/web/in-force").exists()

    @rule(name=NAMES)
    def check(self, name: str) -> None:
        wanted, value = (AFTER, NEW) if name == "apply" else (BEFORE, OLD)
        there = self.contents(), self.value()
        if self.play(name, "", "--check") == (0, 0):
            assert there == (wanted, value)
            assert self.is_in_force(), (
                f"says that all is in place, and the service has not read it\n{self.said}"
            )
        assert (self.contents(), self.value()) == there
        self.look()

    @rule(number=st.sampled_from((0, 1)))
    def edit(self, number: int) -> None:
        self.files[number].write_bytes(b"somebody else's;\n")
        self.foreign[number] = self.files[number].read_bytes()
        self.service("restart")

    @rule(number=st.sampled_from((0, 1)))
    def take_edit_back(self, number: int) -> None:
        if number in self.foreign:
            del self.foreign[number]
            if (before := BEFORE[number]) is None:
                self.files[number].unlink()
            else:
                self.files[number].write_bytes(before)
            self.service("restart")

    @rule(is_foreign=st.booleans())
    def set_value(self, *, is_foreign: bool) -> None:
        self.foreign_value = FOREIGN if is_foreign else None
        self.value(FOREIGN if is_foreign else OLD)
        self.service("restart")

    @rule(mode=st.sampled_from((0o600, 0o644)))
    def chmod(self, mode: int) -> None:
        self.files[0].chmod(mode)
        self.mode = mode

    @rule(what=st.sampled_from(("accepts", "refuses-new", "fails")))
    def refuse_or_accept(self, what: str) -> None:
        """Let the check refuse everything, or what is new, or the service not start with that."""
        file = self.host.root / f"srv/web/{what}"
        if file.exists():
            file.unlink()
        else:
            file.touch()

    @rule()
    def stop(self) -> None:
        self.service("stop")

    def look(self) -> None:
        for number, content in enumerate(self.contents()):
            if number in self.foreign:
                assert content == self.foreign[number], "what somebody else wrote is gone"
            else:
                assert content in (BEFORE[number], AFTER[number]), "a file is neither as before nor as wanted"
        assert self.value() in ((self.foreign_value,) if self.foreign_value else (OLD, NEW))
        assert self.files[0].stat().st_mode & 0o777 == self.mode, "its mode is another one"


@pytest.fixture(scope="module")
def role(bed: Testbed) -> Iterator[type[ExportedRole]]:
    """A host that has the service, the role and Ansible."""
    host = bed.add_host("web")
    (host.root / "srv/check").write_text(CHECK)
    script = host.root / "etc/init.d/web"
    script.write_text(SERVICE)
    script.chmod(0o755)
    service = Service(name="web", check=("sh", "/srv/check"), stop=(), start=(), reload=None)
    paths = [PurePosixPath(path) for path in FILES]
    web = Rewritten(
        before={path: old for path, old in zip(paths, BEFORE, strict=True) if old is not None},
        after={path: new for path, new in zip(paths, AFTER, strict=True) if new is not None},
        service=service,
    )
    setting = PurePosixPath(SETTING)
    kernel = Rewritten(before={setting: OLD}, after={setting: NEW}, service=None)
    put(
        export(make_summary(searches=4), "ansible", rendered={"nginx": web, "sysctl": kernel}),
        host.root / "srv",
    )
    plugin = host.root / "srv/plugins/kill_at.py"
    plugin.parent.mkdir()
    plugin.write_text(PLUGIN)
    ExportedRole.host = host
    return ExportedRole


def test_a_play_that_fails_after_one_that_was_cut_off_leaves_nothing_new_in_force(role: type[ExportedRole]):
    host = role()
    assert host.play("apply", "Take the mark away")[0] != 0
    host.refuse_or_accept("accepts")

    host.run("apply", "")

    assert "web was left running: its check refuses them" in host.said
    assert host.runs()

    host.refuse_or_accept("accepts")
    host.run("undo", "")


def test_files_that_a_play_puts_back_are_in_force_whoever_put_the_others_there(role: type[ExportedRole]):
    host = role()
    host.run("apply", "")
    host.set_value(is_foreign=False)
    host.refuse_or_accept("refuses-new")

    host.run("apply", "")

    assert "Everything was restored" in host.said


def test_no_random_sequence_of_plays_loses_an_edit_or_lies(role: type[ExportedRole]):
    run_state_machine_as_test(
        role,
        settings=settings(
            max_examples=4 * WINNERS, stateful_step_count=6, deadline=None, derandomize=True, database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip
