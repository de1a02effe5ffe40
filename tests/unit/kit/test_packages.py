"""A missing package is named by the installer and by the name of the host's own distribution."""

from collections.abc import Sequence

import pytest

from tuner.adapters.hosts.command_runner import CommandRunner, MissingProgram, Step
from tuner.errors import TargetError
from tuner.kit.packages import Package, say_install
from tuner.ports import Argv, Completed, Process
from tuner.testing.fakes import MemoryHost, completed

WEB = Package("apache2", dnf="httpd", apk="apache2")


def host_with(printed: str) -> MemoryHost:
    def find(_host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
        return completed(argv, stdout=printed.encode())

    return MemoryHost(commands={"sh": find})


@pytest.mark.parametrize(
    ("printed", "package", "said"),
    [
        ("/usr/bin/apt-get\n", WEB, "apt-get install apache2"),
        ("/usr/bin/dnf\n", WEB, "dnf install httpd"),
        ("/sbin/apk\n", WEB, "apk add apache2"),
        ("/usr/bin/pacman\n", WEB, "pacman; Debian calls the package apache2"),
        ("/usr/bin/zypper\n", Package.everywhere("web"), "zypper install web"),
        ("/usr/bin/apt-get\n", "named-tools", "apt-get install named-tools"),
        ("/usr/bin/dnf\n", "named-tools", "dnf; Debian calls the package named-tools"),
        ("", WEB, "the package manager of the host; Debian calls the package apache2"),
    ],
)
def test_the_installer_is_that_which_the_host_has(printed: str, package: str, said: str):
    assert say_install(host_with(printed), package) == said


class BareHost(CommandRunner):
    """A Fedora that has nothing but a shell."""

    name = "bare"

    def _run(self, steps: Sequence[Step]) -> tuple[Completed, ...]:
        for each in steps:
            if each.asked[0] != "sh":
                raise MissingProgram(self.name, each.asked[0])
        return tuple(completed(each.asked, stdout=b"/usr/bin/dnf\n") for each in steps)

    def _start(self, step: Step) -> Process:
        raise MissingProgram(self.name, step.asked[0])


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("ss", "Install it with: dnf install iproute"),
        ("unshare", "Install it with: dnf install util-linux"),
        ("own-server", "Install it."),
    ],
)
def test_a_program_that_is_missing_on_a_host_is_named_with_its_package_there(program: str, said: str):
    expected = f"bare: there is no program '{program}' that may be run. {said}"
    for use in (lambda: BareHost().run((program,), timeout_s=1), lambda: BareHost().start((program,))):
        with pytest.raises(TargetError) as raised:
            use()
        assert str(raised.value) == expected


def test_a_host_that_cannot_be_asked_is_taken_for_a_debian():
    assert say_install(MemoryHost(), WEB) == "apt-get install apache2"
