"""Patches of installed files, and what takes them back."""

from pathlib import PurePosixPath

from tests.unit.simulated_study import make_summary
from tuner.export import Rewritten, export, formats_of
from tuner.ports import Files, Service

POOL = PurePosixPath("/etc/php/8.2/fpm/pool.d/zz-tuner.conf")
MAIN = PurePosixPath("/etc/h2o/h2o.conf")
UNIT = PurePosixPath("/etc/systemd/system/h2o.service.d/zz-tuner.conf")
SOMAXCONN = PurePosixPath("/proc/sys/net/core/somaxconn")


def write(server: str, before: Files, after: Files, *, is_systemd: bool = False) -> dict[str, str]:
    service = Service(
        name=server, check=(server, "-t"), stop=(), start=(), reload=None, is_systemd=is_systemd
    )  # fmt: skip
    rewritten = {server: Rewritten(before=before, after=after, service=service)}
    files = export(make_summary(searches=4), server, rendered=rewritten)
    return {name: content.decode("latin-1") for name, content in files.items()}


def test_an_added_file_is_a_patch_and_its_undo_takes_the_file_alone_away() -> None:
    files = write("php-fpm", {}, {POOL: b"[www]\npm = static\n"})

    patch, undo = files["tuner-php-fpm.patch"], files["tuner-php-fpm-undo.sh"]
    assert "--- /dev/null\n+++ b/etc/php/8.2/fpm/pool.d/zz-tuner.conf\n" in patch
    assert "+pm = static\n" in patch
    assert f"\nrm -f -- {POOL}\nphp-fpm -t\n" in undo
    assert "\npatch " not in undo


def test_a_changed_file_is_put_back_by_a_patch_that_is_tried_first() -> None:
    files = write("h2o", {MAIN: b"a: 1\nb: 2\n"}, {MAIN: b"a: 1\nb: 3\n"})

    assert "-b: 2\n+b: 3\n" in files["tuner-h2o.patch"]
    assert "-b: 3\n+b: 2\n" in files["tuner-h2o-undo.sh"]
    assert "undo --dry-run >/dev/null\nundo\n" in files["tuner-h2o-undo.sh"]


def test_what_is_no_text_and_ends_no_line_is_kept_byte_for_byte() -> None:
    before, after = b"# \xe9\x85\x0c\x1c one\rline\nb: 2\n", b"# \xe9\x85\x0c\x1c one\rline\nb: 3\n"
    patch = write("h2o", {MAIN: before}, {MAIN: after})["tuner-h2o.patch"]

    assert "@@ -1,2 +1,2 @@\n # \xe9\x85\x0c\x1c one\rline\n-b: 2\n+b: 3\n" in patch


def test_a_limit_of_the_unit_is_read_again_by_systemd_both_ways() -> None:
    files = write("h2o", {}, {UNIT: b"[Service]\nLimitNOFILE=9000\n"}, is_systemd=True)

    assert "&& systemctl daemon-reload && h2o -t && systemctl restart h2o\n" in files["tuner-h2o.patch"]
    assert "\nsystemctl daemon-reload\n" in files["tuner-h2o-undo.sh"]


def test_nothing_is_written_when_the_host_has_the_winner_already() -> None:
    assert write("h2o", {}, {}) == {}
    assert write("h2o", {MAIN: b"a: 1\n"}, {MAIN: b"a: 1\n"}) == {}


def test_within_the_servers_own_directory_a_patch_is_undone_by_its_reverse() -> None:
    rewritten = Rewritten(
        before={MAIN: b"a: 1\nb: 2"}, after={MAIN: b"a: 1\nb: 3"}, directory=MAIN.parent,
        service=Service(name="h2o", check=("h2o", "-t"), stop=(), start=(), reload=None),
    )  # fmt: skip
    files = export(make_summary(searches=4), "h2o", rendered={"h2o": rewritten})

    patch, undo = (files[name].decode() for name in ("tuner-h2o.patch", "tuner-h2o-undo.patch"))
    end = "\\ No newline at end of file\n"
    assert patch.endswith(f"--- a/h2o.conf\n+++ b/h2o.conf\n@@ -1,2 +1,2 @@\n a: 1\n-b: 2\n{end}+b: 3\n{end}")
    assert undo.endswith(f"--- a/h2o.conf\n+++ b/h2o.conf\n@@ -1,2 +1,2 @@\n a: 1\n-b: 3\n{end}+b: 2\n{end}")
    for head in (patch, undo):
        assert (
            "# undo:  patch -p1 -d /etc/h2o --dry-run < tuner-h2o-undo.patch && "
            "patch -p1 -d /etc/h2o --no-backup-if-mismatch < tuner-h2o-undo.patch && " in head
        )


def test_a_file_that_is_added_is_taken_away_by_a_script_wherever_it_is() -> None:
    rewritten = Rewritten(before={}, after={POOL: b"[www]\n"}, service=None, directory=POOL.parent)
    files = export(make_summary(searches=4), "php-fpm", rendered={"php-fpm": rewritten})

    assert "+++ b/zz-tuner.conf" in files["tuner-php-fpm.patch"].decode()
    assert f"rm -f -- {POOL}" in files["tuner-php-fpm-undo.sh"].decode()


def test_settings_that_the_files_cannot_be_given_are_to_be_changed_by_hand() -> None:
    why = "h2o: sendfile has a form in this file that tuner does not change."
    rewritten = Rewritten(
        before={MAIN: b"b: 2\n"}, after={MAIN: b"b: 3\n"}, service=None, by_hand={"sendfile": why}
    )
    head = export(make_summary(searches=4), "h2o", rendered={"h2o": rewritten})["tuner-h2o.patch"].decode()

    assert (
        f"# CHANGE BY HAND, as the gain was measured with these settings, too:\n#   sendfile = off ({why})\n"
        in head
    )


def test_a_study_has_a_format_for_each_of_its_servers() -> None:
    rewritten = Rewritten(before={}, after={}, service=None)

    assert formats_of({"h2o": rewritten, "sysctl": rewritten}) == ("h2o", "sysctl", "json")
