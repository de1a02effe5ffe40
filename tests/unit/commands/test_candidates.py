"""What `tuner init` finds: on machines in memory that have a few programs each."""

import pytest

from tuner.commands.candidates import choose_generator, find_candidates, find_page, servers_to_tune
from tuner.plugins import make_host
from tuner.ports import Argv, Completed
from tuner.study.settings import LoadSettings
from tuner.testing.fakes import MemoryHost


def machine(**printed: str) -> MemoryHost:
    """Return a host on which each of these programs prints something."""

    def run(host: MemoryHost, argv: Argv, stdin: bytes) -> Completed:  # noqa: ARG001
        return Completed(
            argv=argv, returncode=0, stdout=printed[argv[0]].encode(), stderr=b"", duration_s=0.0
        )

    return MemoryHost(commands=dict.fromkeys(printed, run))


def test_nothing_is_found_where_nothing_is_installed():
    assert find_candidates(machine()) == ()
    assert find_page(machine()) is None


def test_each_program_is_found_once_with_its_version():
    (found,) = find_candidates(machine(haproxy="HAProxy version 2.6.12-1 2023/12/16"))

    assert (found.server, found.version, found.package) == ("haproxy", (2, 6, 12), "haproxy")
    assert found.is_private
    assert not found.is_running
    assert found.title == "haproxy 2.6.12"


def test_adapters_of_one_program_stand_together():
    found = {each.server: each for each in find_candidates(make_host("local"))}

    assert found["apache"].others == ("apache-mpm", "apache-prefork", "apache-worker")
    assert not {*found["apache"].others} & found.keys()


def test_packages_are_named_once_and_settings_of_the_kernel_are_no_program():
    packages = servers_to_tune()

    assert len(set(packages)) == len(packages)
    assert {"apache2", "nginx", "php-fpm"} <= {*packages}
    assert all(packages)


@pytest.mark.parametrize(
    ("installed", "shape", "chosen"),
    [
        ((), LoadSettings(), "wrk"),
        (("wrk", "h2load", "ab"), LoadSettings(), "wrk"),
        (("ab", "h2load"), LoadSettings(), "h2load"),
        (("oha", "ab"), LoadSettings(), "ab"),
        (("oha",), LoadSettings(), "oha"),
        (("h2load", "ab"), LoadSettings(keepalive=False), "ab"),
    ],
)
def test_a_generator_that_is_there_and_can_send_the_load_is_chosen(installed, shape, chosen):
    assert choose_generator(machine(**dict.fromkeys(installed, "1.0")), shape) == chosen
