"""A list of CPUs is what the kernel writes, or an error: it comes from any host."""

import pytest

from tuner.hosts.machine import parse_cpus


def test_a_list_of_cpus_is_read():
    assert parse_cpus("0,4-5\n") == (0, 4, 5)


@pytest.mark.parametrize("listed", ["", "0-99999999999", "-1", "0-", "a", "9" * 5000, "1-x", "65536"])
def test_what_is_no_list_of_cpus_is_refused_before_it_fills_the_memory(listed: str):
    with pytest.raises(ValueError, match="no list of CPUs"):
        parse_cpus(listed)
