"""Exports of settings under /sys."""

from pathlib import PurePosixPath

from tests.unit.simulated_study import make_summary
from tuner.export import Rewritten, export

PAGES = PurePosixPath("/sys/kernel/mm/transparent_hugepage/enabled")
STEERING = PurePosixPath("/sys/class/net/eth0/queues/rx-0/rps_cpus")


def settings(content: bytes) -> list[str]:
    return [line for line in content.decode().splitlines() if not line.startswith("#")]


def write(**after: bytes) -> dict[str, bytes]:
    before = {PAGES: b"always [madvise] never\n", STEERING: b"0\n"}
    paths = {"pages": PAGES, "steering": STEERING}
    found = Rewritten(
        before=before, after={paths[name]: content for name, content in after.items()}, service=None
    )
    return export(make_summary(searches=4), "sysfs", rendered={"sysfs": found})


def test_settings_are_written_for_tmpfiles_and_those_of_cards_for_udev_too():
    files = write(pages=b"never\n", steering=b"3\n")

    assert settings(files["99-tuner.conf"]) == [f"w {STEERING} - - - - 3", f"w {PAGES} - - - - never"]
    assert settings(files["99-tuner.rules"]) == [
        'ACTION=="add|move", SUBSYSTEM=="net", KERNEL=="eth0", ATTR{queues/rx-0/rps_cpus}="3"'
    ]
    head = files["99-tuner.conf"].decode()
    assert "cp 99-tuner.conf /etc/tmpfiles.d/ && systemd-tmpfiles --create" in head
    assert "cp 99-tuner.rules /etc/udev/rules.d/" in head


def test_the_undo_writes_the_word_that_was_in_force():
    files = write(pages=b"never\n")

    assert settings(files["tuner-sys-undo.conf"]) == [f"w {PAGES} - - - - madvise"]
    assert "99-tuner.rules" not in files


def test_what_is_in_force_is_not_exported():
    assert write(pages=b"madvise\n") == {}
