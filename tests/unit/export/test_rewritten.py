"""Exports of a managed study: the difference that its server makes to the installed files."""

from pathlib import PurePosixPath

import pytest

from tests.unit.simulated_study import make_summary
from tuner.errors import UsageError
from tuner.export import Rendered, Rewritten, export, formats_of, paths_to_read
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


def test_keys_of_the_kernel_are_exported_with_the_values_of_the_host() -> None:
    rewritten = {"sysctl": Rewritten(before={SOMAXCONN: b"128\n"}, after={SOMAXCONN: b"999\n"}, service=None)}
    files = export(make_summary(searches=4), "sysctl", rendered=rewritten)

    assert paths_to_read("sysctl", rewritten) == ()
    assert files["99-tuner.conf"].endswith(b"net.core.somaxconn = 999\n")
    assert files["tuner-sysctl-undo.conf"].endswith(b"net.core.somaxconn = 128\n")


def test_a_private_h2o_has_no_format_of_its_own() -> None:
    rendered = {"h2o": Rendered(default={}, winner={})}

    assert formats_of(rendered) == ("json",)
    with pytest.raises(UsageError, match=r"h2o ran as a private instance.* Choose --format json, or .*apply"):
        export(make_summary(searches=4), "h2o", rendered=rendered)
