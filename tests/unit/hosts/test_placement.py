from pathlib import PurePosixPath

from tuner.hosts.placement import choose_cpus, place, read_cores
from tuner.ports import FileState
from tuner.testing.fakes import MemoryHost


def test_one_cpu_is_shared_and_the_note_says_so():
    placement = place({3})

    assert placement.server_cpus == placement.generator_cpus == {3}
    assert placement.server_cpus & placement.generator_cpus
    assert placement.note == "co-located: server and generator share the only CPU, CPU 3"


def test_two_cpus_are_one_each():
    placement = place({0, 1})

    assert (placement.server_cpus, placement.generator_cpus) == ({0}, {1})
    assert not placement.server_cpus & placement.generator_cpus
    assert placement.note == "co-located: server on CPU 0, generator on CPU 1"


def test_of_four_cpus_the_server_gets_three():
    assert place({0, 1, 2, 3}).generator_cpus == {3}


def test_of_eight_cpus_the_server_gets_six():
    placement = place(set(range(8)))

    assert placement.server_cpus == set(range(6))
    assert placement.note == "co-located: server on CPUs 0, 1, 2, 3, 4, 5, generator on CPUs 6, 7"


def test_a_physical_core_is_never_divided_when_there_are_others():
    cores = [frozenset({0, 4}), frozenset({1, 5}), frozenset({2, 6}), frozenset({3, 7})]

    placement = place(set(range(8)), cores)

    assert placement.generator_cpus == {3, 7}
    assert placement.server_cpus == {0, 4, 1, 5, 2, 6}


def test_the_two_threads_of_an_only_core_are_divided_and_the_note_says_so():
    placement = place({0, 1}, [frozenset({0, 1})])

    assert (placement.server_cpus, placement.generator_cpus) == ({0}, {1})
    assert placement.note.endswith("(threads of one core)")


def test_only_allowed_cpus_are_used():
    cores = [frozenset({0, 1}), frozenset({2, 3})]

    placement = place({1, 2}, cores)

    assert placement.server_cpus | placement.generator_cpus == {1, 2}


def test_a_cpu_quota_is_spent_on_as_many_cpus_as_it_pays_for():
    cores = [frozenset({0, 4}), frozenset({1, 5}), frozenset({2, 6}), frozenset({3, 7})]

    assert choose_cpus(range(8), cores, 2) == {0, 1}
    assert choose_cpus(range(8), cores, 5) == {0, 1, 2, 3, 4}
    assert choose_cpus({4, 5, 6}, cores, 8) == {4, 5, 6}


def test_cores_are_read_from_the_kernel_and_what_it_does_not_say_is_left_out():
    listed = PurePosixPath("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    host = MemoryHost(files={listed: FileState(content=b"0,4-5\n")})

    assert read_cores(host, {0, 1}) == ({0, 4, 5},)
