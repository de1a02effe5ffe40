"""A php-fpm whose log level hides the notices in which it prints its settings."""

import pytest

from tests.unit.adapters.servers.php_fpm.layouts import BOOKWORM, find_pool, host_of, with_file
from tuner.adapters.servers.php_fpm import PhpFpm
from tuner.errors import TargetError
from tuner.ports import Argv, Completed
from tuner.testing.fakes import MemoryHost, completed

MAIN = "/etc/php/8.2/fpm/php-fpm.conf"
QUIET = with_file(BOOKWORM, MAIN, BOOKWORM.files[MAIN].replace("[global]\n", "[global]\nlog_level = error\n"))
(PROGRAM,) = QUIET.programs


def quiet_host(*titles: str) -> MemoryHost:
    """Make a machine with these first processes, whose php-fpm prints no notices with its own log level."""
    host = host_of(QUIET)
    prints = host.commands[PROGRAM]

    def php_fpm(host: MemoryHost, argv: Argv, stdin: bytes) -> Completed:
        return completed(argv) if "-tt" in argv else prints(host, argv, stdin)

    def sh(host: MemoryHost, argv: Argv, stdin: bytes) -> Completed:
        if "pgrep" in argv[2]:
            return completed(argv, stdout="".join(f"812 {title}\n" for title in titles).encode())
        return completed(argv) if b"log_level" in stdin else prints(host, argv, stdin)

    host.commands |= {PROGRAM: php_fpm, "sh": sh}
    return host


def test_its_settings_are_asked_for_without_its_log_level():
    host = quiet_host(f"php-fpm: master process ({MAIN})")

    found, loud = PhpFpm().find(host), find_pool(BOOKWORM)

    assert found.facts.current == loud.facts.current
    assert (found.log, list(found.files)) == (loud.log, list(loud.files))
    assert b"log_level = error" in next(iter(found.files.values()))
    assert host.written == []


@pytest.mark.parametrize(
    "titles",
    [(), (f"php-fpm: master process ({MAIN})", "php-fpm: master process (/etc/php/7.4/fpm/php-fpm.conf)")],
    ids=["it does not run", "two run"],
)
def test_one_that_cannot_be_asked_says_why(titles: tuple[str, ...]):
    with pytest.raises(TargetError, match="prints no settings, because log_level hides notices"):
        PhpFpm().find(quiet_host(*titles))
