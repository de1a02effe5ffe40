"""The scripts of the shell format, run as they are, on files of a test's own. They need root."""

import subprocess
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.integration.exported import put
from tests.more import examples
from tests.unit.simulated_study import make_summary
from tuner.export import Rewritten, export
from tuner.ports import Argv, Service

CONTENTS = st.none() | st.binary(max_size=200).map(lambda content: content.replace(b"\0", b""))
SHELLS = (["dash"], ["bash"], ["busybox", "sh"])


class Script:
    """Two files in a folder, and the scripts that change them."""

    def __init__(
        self,
        folder: Path,
        before: list[bytes | None],
        after: list[bytes],
        check: Argv = ("true",),
        names: Sequence[str] = ("a.conf", "b.conf"),
    ):
        self.folder = folder
        self.files = [folder / name for name in names]
        for file, content in zip(self.files, before, strict=True):
            file.unlink(missing_ok=True)
            if content is not None:
                file.write_bytes(content)
                file.chmod(0o640)
        paths = [PurePosixPath(file) for file in self.files]
        service = Service(name="web", check=check, stop=(), start=(), reload=None)
        changed = Rewritten(
            before={path: old for path, old in zip(paths, before, strict=True) if old is not None},
            after=dict(zip(paths, after, strict=True)),
            service=service,
        )
        exported = export(make_summary(searches=4), "shell", rendered={"nginx": changed})
        # The files are of no service: what would tell it runs a command, which makes a file by default.
        tell = f'service() {{ sh "{folder}/tell"; }}\nsystemctl() {{ service; }}\n'.encode()
        (folder / "tell").write_text(f"touch '{folder}/told'\n")
        put({name: text.replace(b"\n", b"\n" + tell, 1) for name, text in exported.items()}, folder)

    def run(
        self,
        name: str,
        shell: Sequence[str] = ("dash",),
        *options: str,
    ) -> "subprocess.CompletedProcess[str]":
        script = [*shell, str(self.folder / "tuner-shell" / name), *options]
        return subprocess.run(script, capture_output=True, text=True, timeout=30, check=False)

    def contents(self) -> list[bytes | None]:
        return [file.read_bytes() if file.exists() else None for file in self.files]


@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=st.lists(CONTENTS, min_size=2, max_size=2),
    after=st.lists(CONTENTS.filter(lambda content: content is not None), min_size=2, max_size=2),
    shell=st.sampled_from(SHELLS),
)
def test_every_byte_is_put_and_put_back_in_every_shell(
    tmp_path: Path, before: list[bytes | None], after: list[bytes], shell: list[str]
) -> None:
    if before == after:
        return
    script = Script(tmp_path, before, after)
    for name, expected in (("apply.sh", after), ("undo.sh", before)):
        done = script.run(name, shell)
        assert (done.returncode, script.contents()) == (0, expected), done.stderr
        assert "everything is in place already" in script.run(name, shell).stdout
    assert all(file.stat().st_mode & 0o777 == 0o640 for file in script.files if file.exists())
    for own in ("tell", "told"):
        (tmp_path / own).unlink()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == [
        file.name for file, content in zip(script.files, before, strict=True) if content is not None
    ]


def test_whether_all_is_in_place_can_be_asked_without_a_change(tmp_path: Path) -> None:
    before: list[bytes | None] = [b"a 1;\n", None]
    script = Script(tmp_path, before, [b"a 2;\n", b"b 2;\n"])

    asked = script.run("apply.sh", ("dash",), "--check")
    assert (asked.returncode, script.contents()) == (1, before)
    assert "not everything is in place; nothing was changed" in asked.stderr
    assert script.run("undo.sh", ("dash",), "--check").returncode == 0

    script.run("apply.sh")
    assert script.run("apply.sh", ("dash",), "--check").returncode == 0
    refused = script.run("undo.sh", ("dash",), "--chekc")
    assert (refused.returncode, script.contents()) == (1, [b"a 2;\n", b"b 2;\n"])
    assert "--chekc is no option; the only option is --check" in refused.stderr


def test_a_file_that_somebody_changed_meanwhile_is_left_and_so_is_all_else(tmp_path: Path) -> None:
    script = Script(tmp_path, [b"a 1;\n", b"b 1;\n"], [b"a 2;\n", b"b 2;\n"])
    script.files[1].write_bytes(b"b 3;\n")

    done = script.run("apply.sh")

    assert done.returncode == 1
    assert "b.conf has changed since this was written. Nothing was changed." in done.stderr
    assert script.contents() == [b"a 1;\n", b"b 3;\n"]


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    script = Script(tmp_path, [b"a 1;\n", b"b 1;\n"], [b"a 2;\n", b"b 2;\n"])
    real = script.files[0].rename(tmp_path / "real.conf")
    script.files[0].symlink_to(real)

    assert script.run("apply.sh").returncode == 1
    assert (real.read_bytes(), script.files[1].read_bytes()) == (b"a 1;\n", b"b 1;\n")


@pytest.mark.parametrize("name", ["apply.sh", "undo.sh"])
def test_what_the_server_refuses_is_put_back(tmp_path: Path, name: str) -> None:
    before: list[bytes | None] = [b"a 1;\n", None]
    after = [b"a 2;\n", b"b 2;\n"]
    script = Script(tmp_path, before, after)
    if name == "undo.sh":
        script.run("apply.sh")
    there = script.contents()
    path = tmp_path / "tuner-shell" / name
    path.write_bytes(path.read_bytes().replace(b"\ntrue\n", b"\nfalse\n"))

    done = script.run(name)

    assert done.returncode == 1
    assert "failed; restoring everything" in done.stderr
    assert script.contents() == there


def test_a_run_that_was_killed_before_the_restart_is_noticed_and_ended_by_the_next(tmp_path: Path) -> None:
    after = [b"a 2;\n", b"b 2;\n"]
    script, told = Script(tmp_path, [b"a 1;\n", None], after), tmp_path / "told"
    path = tmp_path / "tuner-shell/apply.sh"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"\ntrue\n", b"\nkill -9 $$\n"))
    assert script.run("apply.sh").returncode == -9
    assert (script.contents(), told.exists()) == (after, False)

    path.write_bytes(whole)
    for name, code in (("apply.sh", 1), ("undo.sh", 1)):
        asked = script.run(name, ("dash",), "--check")
        assert (asked.returncode, told.exists()) == (code, False)
        assert "an earlier run was cut off; services may still run with old settings" in asked.stderr

    ended = script.run("apply.sh")
    assert (ended.returncode, script.contents(), told.exists()) == (0, after, True), ended.stderr
    assert script.run("apply.sh", ("dash",), "--check").returncode == 0


def test_what_a_killed_run_had_begun_to_write_is_gone_when_it_is_undone(tmp_path: Path) -> None:
    before: list[bytes | None] = [b"a 1;\n", None]
    (tmp_path / "more").mkdir()
    script = Script(tmp_path, before, [b"a 2;\n", b"b 2;\n"], names=("a.conf", "more/b.conf"))
    assert script.run("apply.sh").returncode == 0
    (tmp_path / "more/.tuner-new").write_bytes(b"b")

    assert script.run("undo.sh").returncode == 0

    assert (script.contents(), list((tmp_path / "more").iterdir())) == (before, [])


def test_what_fails_after_a_run_that_was_killed_puts_the_originals_back_and_in_force(tmp_path: Path) -> None:
    before: list[bytes | None] = [b"a 1;\n", None]
    script, told = Script(tmp_path, before, [b"a 2;\n", b"b 2;\n"]), tmp_path / "told"
    path = tmp_path / "tuner-shell/apply.sh"
    whole = path.read_bytes()
    refusing = b"! grep -q 2 %s" % bytes(script.files[0])
    for check, code in ((b"kill -9 $$", -9), (refusing, 1)):
        path.write_bytes(whole.replace(b"\ntrue\n", b"\n%s\n" % check))
        assert (script.run("apply.sh").returncode, told.exists()) == (code, code == 1)

    assert script.contents() == before
    asked = script.run("undo.sh", ("dash",), "--check")
    assert asked.returncode == 0, asked.stderr


def test_a_service_whose_check_refuses_its_own_files_is_not_restarted_on_the_way_back(tmp_path: Path) -> None:
    before: list[bytes | None] = [b"a 1;\n", None]
    script, told = Script(tmp_path, before, [b"a 2;\n", b"b 2;\n"]), tmp_path / "told"
    path = tmp_path / "tuner-shell/apply.sh"
    whole = path.read_bytes()
    for check in (b"kill -9 $$", b"false"):
        path.write_bytes(whole.replace(b"\ntrue\n", b"\n%s\n" % check))
        done = script.run("apply.sh")

    assert (script.contents(), told.exists()) == (before, False)
    assert "the services were left running" in done.stderr
    path.write_bytes(whole)
    assert script.run("undo.sh", ("dash",), "--check").returncode == 1
    assert (script.run("undo.sh").returncode, told.exists()) == (0, True)


@pytest.mark.parametrize("shell", SHELLS)
def test_names_with_blanks_and_files_that_few_may_read_stay_as_they_are(
    tmp_path: Path, shell: list[str]
) -> None:
    names = ("my  site.conf", " x $(touch y) 'z\".conf")
    before, after = [b"password one;\n", b"b 1;\n"], [b"password two;\n", b"b 2;\n"]
    script = Script(tmp_path, list(before), after, names=names)
    script.files[0].chmod(0o600)

    for name, expected in (("apply.sh", after), ("undo.sh", before)):
        done = script.run(name, shell)
        assert (done.returncode, script.contents()) == (0, expected), done.stderr
        assert [file.stat().st_mode & 0o777 for file in script.files] == [0o600, 0o640]
