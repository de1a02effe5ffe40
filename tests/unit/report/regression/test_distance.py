"""In what the surroundings of a result differ, in words."""

from dataclasses import replace

import pytest

from tests.unit.simulated_study import FINGERPRINT
from tuner.report.regression.distance import find_distance


def test_the_same_surroundings_have_no_distance():
    assert find_distance(FINGERPRINT, FINGERPRINT) == ()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"host": "web2"}, "host: web1 → web2: another machine"),
        ({"cpu": "Other CPU"}, "CPU: Example CPU → Other CPU: what is best"),
        ({"cores": 8}, "CPUs: 2 → 8: numbers of processes"),
        ({"memory_mib": 16000}, "memory: 7900 MiB → 16000 MiB: buffers"),
        ({"kernel": "6.18.50"}, "kernel: 6.18.44 → 6.18.50: another build of the same series"),
        ({"kernel": "6.12.1"}, "kernel: 6.18.44 → 6.12.1: another release series"),
        ({"kernel": "7.0.0"}, "kernel: 6.18.44 → 7.0.0: another major release"),
        ({"servers": {"nginx": "1.24.0", "sysctl": "6.18.44"}}, "nginx: 1.22.1 → 1.24.0: another release"),
        (
            {"generator": "wrk 4.2.0"},
            "load generator: wrk 4.1.0 → wrk 4.2.0: ratios compare with those of the study",
        ),
        ({"server_cpus": (0, 1)}, "placement: server on CPUs 0, load on 1 → server on CPUs 0, 1, load on 1"),
    ],
)
def test_each_difference_says_what_it_may_mean(changed: dict[str, object], said: str):
    (found,) = find_distance(FINGERPRINT, replace(FINGERPRINT, **changed))

    assert str(found).startswith(said)


def test_the_kernels_own_settings_are_told_with_the_kernel():
    now = replace(FINGERPRINT, kernel="6.19.1", servers={"nginx": "1.22.1", "sysctl": "6.19.1"})

    assert [each.what for each in find_distance(FINGERPRINT, now)] == ["kernel"]


def test_what_the_kernel_keeps_for_itself_is_no_change_of_the_machine():
    assert find_distance(FINGERPRINT, replace(FINGERPRINT, memory_mib=7800)) == ()


def test_where_nothing_loads_the_generator_is_not_looked_at():
    now = replace(FINGERPRINT, generator="", co_located=False, server_cpus=())

    assert find_distance(FINGERPRINT, now) == ()
