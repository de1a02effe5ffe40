"""Make limits bite on test hosts, and print what `tuner advise` names first.

    python -m benchmarks.advice [WORDS…]

With words, only the situations are made whose names have one of them. Exit status 1 when a limit is not named
first in more than one of twenty, or a healthy host has a finding that bites now.
"""

import os
import sys
import time
from collections.abc import Iterator

from tests.integration.limits import SITUATIONS, Situation, busy, idle, limit, tune
from tests.testbed.bed import Testbed, open_testbed
from tuner.advice.findings import Level
from tuner.commands.advise import advise
from tuner.errors import TunerError
from tuner.plugins import make_host

HEALTHY = (
    *("nginx", "apache", "apache-worker", "apache-prefork", "h2o", "php-fpm"),
    *("nginx, tuned", "apache, tuned"),
)
MISSES = 1 / 20


def main() -> int:
    """Make every situation, and print a line for each."""
    words = sys.argv[1:]
    chosen = [each for each in SITUATIONS if not words or any(word in each.name for word in words)]
    with open_testbed() as bed:
        os.environ["HOME"] = str(bed.home)
        os.environ.pop("SSH_AUTH_SOCK", None)
        right = [_try(bed, each, f"limit{number}") for number, each in enumerate(chosen)]
        quiet = [] if words else list(_try_healthy(bed))
    print(f"{right.count(True)} of {len(right)} limits are named first.")
    print(f"{quiet.count(True)} of {len(quiet)} healthy hosts have no finding that bites now.")
    return int(right.count(False) > MISSES * len(right) or not all(quiet))


def _try(bed: Testbed, situation: Situation, name: str) -> bool:
    try:
        with limit(situation, bed, name) as host:
            begun_s = time.monotonic()
            found = advise(make_host(host.ssh_url))
            took_s = time.monotonic() - begun_s
    except (AssertionError, RuntimeError, TunerError) as error:
        print(f"{situation.name:32} cannot be made here: {error}", flush=True)
        return False
    first = found.findings[0] if found.findings else None
    said = f"{first.rule} ({first.level})" if first else "nothing"
    is_right = first is not None and first.level is Level.NOW and first.rule in situation.rules
    mark = "" if is_right else f"   WRONG: {', '.join(each.rule for each in found.findings)} {found.unread}"
    print(f"{situation.name:32} {said:36} {took_s:5.1f} s{mark}", flush=True)
    return is_right


def _try_healthy(bed: Testbed) -> Iterator[bool]:
    for number, title in enumerate(HEALTHY):
        server, _, tuned = title.partition(", ")
        host = bed.add_host(f"healthy{number}")
        if tuned:
            tune(host, server)
        host.install(server)
        for state, make in (("idle", idle), ("busy", busy)):
            with make(host):
                found = advise(make_host(host.ssh_url))
            biting = [each.rule for each in found.findings if each.level is Level.NOW]
            print(f"{f'healthy: {title}, {state}':32} {', '.join(biting) or 'nothing'}", flush=True)
            yield not biting


if __name__ == "__main__":
    sys.exit(main())
