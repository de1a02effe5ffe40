"""Limits of systemd units: read as systemctl prints them, raised where a configuration needs more."""

from pathlib import PurePosixPath

import pytest

from tuner.deploy.systemd_limits import (
    UNLIMITED,
    UnitLimits,
    ask_limits,
    raise_limits,
    read_limits,
    touches_units,
)
from tuner.ports import Needs, Service
from tuner.testing.fakes import completed

DROP_IN = PurePosixPath("/etc/systemd/system/apache2.service.d/zz-tuner.conf")


def service(name: str = "apache2") -> Service:
    return Service(name=name, check=None, stop=("true",), start=("true",), reload=None, is_systemd=True)


def read(text: str) -> UnitLimits:
    return read_limits(completed(ask_limits(service()).argv, stdout=text.encode()))


def test_limits_are_read_as_systemctl_prints_them():
    assert read("LimitNOFILE=524288\nTasksMax=4915\n") == UnitLimits(open_files=524288, tasks=4915)


@pytest.mark.parametrize("text", ["", "LimitNOFILE=infinity\n", "TasksMax=[not set]\n", "garbage"])
def test_no_limit_is_none(text: str):
    assert read(text) == UNLIMITED


def test_what_is_too_low_is_raised_and_the_other_limit_kept():
    limits = UnitLimits(open_files=1024, tasks=4915)

    files = raise_limits(service(), limits, Needs(open_files=8192, tasks=600))

    assert files == {DROP_IN: b"[Service]\nLimitNOFILE=8192\nTasksMax=4915\n"}
    assert touches_units(files)


def test_what_an_earlier_apply_raised_is_not_lost():
    first = raise_limits(service(), UnitLimits(open_files=2000, tasks=100), Needs(open_files=9000, tasks=200))
    assert first == {DROP_IN: b"[Service]\nLimitNOFILE=9000\nTasksMax=200\n"}

    again = raise_limits(
        service(), UnitLimits(open_files=9000, tasks=200), Needs(open_files=12000, tasks=150)
    )

    assert again == {DROP_IN: b"[Service]\nLimitNOFILE=12000\nTasksMax=200\n"}


def test_a_unit_may_be_named_with_its_ending():
    files = raise_limits(service("apache2.service"), UnitLimits(tasks=100), Needs(tasks=600))

    assert files == {DROP_IN: b"[Service]\nTasksMax=600\n"}


@pytest.mark.parametrize("limits", [UNLIMITED, UnitLimits(open_files=8192, tasks=600)])
def test_what_is_high_enough_is_left_alone(limits: UnitLimits):
    assert raise_limits(service(), limits, Needs(open_files=8192, tasks=600)) == {}
    assert not touches_units({PurePosixPath("/etc/nginx/nginx.conf"): b""})
