"""Reads `targets:`, the hosts of a study whose winner is to hold on all of them."""

from collections import Counter
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from tuner.records.hosts import AcrossHosts
from tuner.space.problems import quote
from tuner.study.fields import Fields, Keys
from tuner.study.settings import LOCAL, Targets, TargetSettings

LEAST_TARGETS, MOST_TARGETS = 2, 64
REFUSE, MODEL = "refuse", "model"
UNLIKE = (REFUSE, MODEL)
OF_TARGETS = ("across", "unlike_hosts")
"""Keys that say something of several hosts only."""
SSH_PORT = 22


def read_targets(fields: Fields, read_target: Callable[[Fields, Keys], TargetSettings]) -> Targets | None:
    """Read the hosts and what counts of them together; None where the study has one `target:`.

    Args:
        fields: of the study file.
        read_target: reads one of them, as `target:` is read.

    Raises UsageError naming file, line, value and remedy.
    """
    keys: Keys = ("targets",)
    given = fields.value(keys)
    if given is None:
        for key in OF_TARGETS:
            if fields.value((key,)) is not None:
                raise fields.wrong((key,), "there are no `targets:`", "Leave it out, or write `targets:`")
        return None
    if fields.value(("target",)) is not None:
        raise fields.wrong(("target",), "`target:` beside `targets:`", "Make it one of them")
    if not isinstance(given, list) or not LEAST_TARGETS <= len(given) <= MOST_TARGETS:
        raise fields.wrong(
            keys, f"{quote(given)} is not a list of {LEAST_TARGETS} to {MOST_TARGETS} hosts",
            "Write `targets: [ssh://root@web1, ssh://root@web2]`, or one `target:`",
        )  # fmt: skip
    entries = tuple(_read_entry(fields, index, read_target) for index in range(len(given)))
    _refuse_twice(fields, [each.host for each in entries])
    for key in ("mode", "watchdog_s", "logs_mib"):
        values = list(dict.fromkeys(str(getattr(each, key)) for each in entries))
        if len(values) > 1:
            raise fields.wrong(keys, f"`{key}` is {' and '.join(values)}", "Make it the same for all hosts")
    return Targets(
        entries=entries,
        across=AcrossHosts(fields.choice(("across",), AcrossHosts.WORST.value, tuple(AcrossHosts))),
        models_unlike=fields.choice(("unlike_hosts",), REFUSE, UNLIKE) == MODEL,
    )


def refuse_shared_load(fields: Fields, targets: Targets, path: str, load_hosts: tuple[str, ...]) -> None:
    """Raise UsageError where the load of one installed service would go to, or come from, another host."""
    if not targets.entries[0].is_managed:
        return
    if "://" in path:
        raise fields.wrong(
            ("load", "path"),
            f"{quote(path)} is the address of one host, and there are several",
            "Write the path alone, as /index.html: each host has an address of its own",
        )
    if both := [host for host in load_hosts if host in targets.hosts]:
        raise fields.wrong(
            ("load", "host"),
            f"{both[0]} is one of the `targets:`: load for the others would disturb what is measured there",
            "Name a host that is none of them",
        )


def _read_entry(
    fields: Fields, index: int, read_target: Callable[[Fields, Keys], TargetSettings]
) -> TargetSettings:
    """Read one entry: a host, or the keys of `target:`."""
    entry = fields.value(("targets",))[index]
    if isinstance(entry, str):
        return TargetSettings(host=str(entry).strip())
    if not isinstance(entry, Mapping) or not entry.get("host"):
        raise fields.wrong(("targets", index), f"{quote(entry)} is no host", "Write ssh://user@host:port")
    return read_target(Fields(fields.document.below(("targets", index))), ())


def _refuse_twice(fields: Fields, hosts: list[str]) -> None:
    """Raise UsageError where two entries lead to one machine by their names."""
    places = [_place(host) for host in hosts]
    twice = next((place for place, count in Counter(places).items() if count > 1), None)
    if twice is not None:
        first, second, *_ = (host for host, place in zip(hosts, places, strict=True) if place == twice)
        raise fields.wrong(
            ("targets",), f"{quote(first)} and {quote(second)} are one host", "Name each host once"
        )


def _place(host: str) -> tuple[str, int]:
    """Return where a host is found, whoever logs in there."""
    if host == LOCAL:
        return LOCAL, 0
    url = urlsplit(host)
    try:
        return (url.hostname or host).lower(), url.port or SSH_PORT
    except ValueError:  # no number: its adapter says what is wrong with it
        return host, SSH_PORT
