"""Make limits bite on test hosts, and print what `tuner advise` names first.

    python -m benchmarks.advice [WORDS…]

With words, only the situations are made whose names have one of them. Printed are a Markdown table of the
situations and one of the healthy hosts; details of a wrong row go to stderr. Exit status 1 when a limit is
not named first in more than one of twenty, or a healthy host has a finding that bites now.
"""

import os
import sys
from collections.abc import Iterator

from tests.integration.limits import SITUATIONS, Situation, busy, idle, limit, serve, tune
from tests.testbed.bed import Testbed, open_testbed
from tuner.advice.findings import Advice, Level
from tuner.commands.advise import advise
from tuner.errors import TunerError
from tuner.plugins import make_host

HEALTHY = (
    *("nginx", "apache", "apache-worker", "apache-prefork", "h2o", "php-fpm", "haproxy", "caddy"),
    *("nginx, tuned", "apache, tuned"),
)
MISSES = 1 / 20


def main() -> int:
    """Make every situation, and print a row for each."""
    words = sys.argv[1:]
    chosen = [each for each in SITUATIONS if not words or any(word in each.name for word in words)]
    with open_testbed() as bed:
        os.environ["HOME"] = str(bed.home)
        os.environ.pop("SSH_AUTH_SOCK", None)
        print("| limit that was made to bite | servers | named first | result |\n|---|---|---|---|")
        right = [_try(bed, each, f"limit{number}") for number, each in enumerate(chosen)]
        print(f"\n{right.count(True)} of {len(right)} limits are named first.")
        quiet = [] if words else list(_try_healthy(bed))
    if quiet:
        print(f"\n{quiet.count(True)} of {len(quiet)} healthy hosts have no finding that bites now.")
    return int(right.count(False) > MISSES * len(right) or not all(quiet))


def _try(bed: Testbed, situation: Situation, name: str) -> bool:
    try:
        with limit(situation, bed, name) as host:
            found = advise(make_host(host.ssh_url))
    except (AssertionError, RuntimeError, TunerError) as error:
        print(f"| {situation.name} | | | not made here |", flush=True)
        print(f"{situation.name}: {error}", file=sys.stderr, flush=True)
        return False
    first = found.findings[0] if found.findings else None
    is_right = first is not None and first.level is Level.NOW and first.rule in situation.rules
    said = f"`{first.rule}` ({first.level})" if first else "nothing"
    row = (situation.name, _name_servers(found), said, "right" if is_right else "**wrong**")
    print(f"| {' | '.join(row)} |", flush=True)
    if not is_right:
        every = ", ".join(f"{each.rule} ({each.level})" for each in found.findings)
        print(f"{situation.name}: {every}. Not read: {found.unread}", file=sys.stderr, flush=True)
    return is_right


def _name_servers(found: Advice) -> str:
    return ", ".join(
        f"{each.name} {'.'.join(map(str, each.installation.facts.version))}".strip() for each in found.servers
    )


def _try_healthy(bed: Testbed) -> Iterator[bool]:
    print("\n| healthy host | load | limits that bite now |\n|---|---|---|")
    for number, title in enumerate(HEALTHY):
        server, _, tuned = title.partition(", ")
        host = bed.add_host(f"healthy{number}")
        if tuned:
            tune(host, server)
        serve(host, server)
        for state, make in (("idle", idle), ("busy", busy)):
            with make(host):
                found = advise(make_host(host.ssh_url))
            biting = [each.rule for each in found.findings if each.level is Level.NOW]
            print(f"| {title} | {state} | {', '.join(biting) or 'none'} |", flush=True)
            yield not biting


if __name__ == "__main__":
    sys.exit(main())
