from dataclasses import replace

import pytest

from tests.unit.corpus.samples import HERE
from tuner.corpus.likeness import likeness


def other_load(**facts):
    return replace(HERE, workload={**HERE.workload, **facts})


def test_a_host_is_like_itself():
    assert likeness(HERE, HERE) == 1.0


@pytest.mark.parametrize(
    "there",
    [
        replace(HERE, cpu="Another CPU"),
        replace(HERE, cores=8),
        replace(HERE, memory_mib=16384),
        replace(HERE, kernel="6.1.0"),
        replace(HERE, co_located=False),
        replace(HERE, servers={"nginx": "1.26.0"}),
        replace(HERE, servers={"nginx": "1.22.1", "sysctl": "6.18"}),
        other_load(keepalive=False),
        other_load(connections=200),
    ],
)
def test_every_difference_costs_and_both_ways_the_same(there):
    assert 0.1 < likeness(HERE, there) < 1.0
    assert likeness(HERE, there) == likeness(there, HERE)


def test_differences_add_up():
    there, elsewhere = replace(HERE, cores=8), other_load(keepalive=False)
    both = replace(elsewhere, cores=8)

    assert likeness(HERE, both) == pytest.approx(likeness(HERE, there) * likeness(HERE, elsewhere))


def test_another_load_is_further_than_another_machine():
    assert likeness(HERE, other_load(keepalive=False)) < likeness(HERE, replace(HERE, cpu="x", kernel="5.1"))


def test_patches_and_what_only_one_knows_of_the_load_cost_nothing():
    assert likeness(HERE, replace(HERE, servers={"nginx": "1.22.9"}, kernel="6.18.1")) == 1.0
    assert likeness(HERE, replace(HERE, workload={"keepalive": True})) == 1.0


def test_studies_of_other_servers_say_nothing():
    assert likeness(HERE, replace(HERE, servers={"apache": "2.4.57"})) == 0.0
