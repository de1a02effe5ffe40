"""Write the one file that makes an installed Apache run with other settings."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from tuner.adapters.servers.apache.mpm import loaded_mpm
from tuner.adapters.servers.apache.settings import (
    Settings,
    find_withheld,
    in_force,
    read_settings,
    write_value,
)
from tuner.adapters.servers.apache.syntax import Tree, logical_lines, read_directives
from tuner.errors import ConfigRejected, TargetError
from tuner.kit.config_files import DROP_IN_HEAD, DROP_IN_NAME
from tuner.ports import Config, Facts, Files, Scalar

DIRECTORIES = ("conf-enabled", "conf.d")
"""Where Debian and RHEL-likes include files of the administrator's, in the order of their names."""

UNKNOWN = "its active value is not known, because no line of the configuration sets this value"
REMEDY = "Leave this setting out of the search space with `without:`."

_PROBE = "TunerIsReadHere"


def find_place(tree: Tree) -> PurePosixPath:
    """Find out which drop-in the configuration would include. Raises TargetError when none is."""
    places = [tree.main.parent / directory / DROP_IN_NAME for directory in DIRECTORIES]
    # RHEL-likes have conf/httpd.conf beside conf.d.
    places += [tree.main.parent.parent / directory / DROP_IN_NAME for directory in DIRECTORIES]
    for place in places:
        probed = _with_file(tree, place, f"{_PROBE} on\n")
        if any(each.written == _PROBE and not each.sections for each in read_directives(probed)):
            return place
    raise TargetError(
        f"apache: {tree.main} does not include {' or '.join(map(str, places[:2]))}, so tuner has no place "
        f"for its settings. Add a line at the end of this file: IncludeOptional {places[0].parent}/*.conf"
    )


def write_drop_in(config: Config, tree: Tree, facts: Facts) -> Files:
    """Give the drop-in, or nothing when the configuration is what is active.

    Raises:
        ConfigRejected: a value that is none of its directive's, or one that the MPM would change.
        TargetError: a line after the drop-in wins.
    """
    before = read_settings(read_directives(tree), facts)
    current = in_force(before, facts)
    mpm = loaded_mpm(facts)
    for name, value in config.items():
        _refuse_unknown(name, before)
        write_value(name, value, current[name])
    changed = {name for name, value in config.items() if value != current[name]}
    if changed.isdisjoint(mpm.sizes):
        # The limits leave room for sizes that stay as they are.
        changed.difference_update(mpm.limits)
    else:
        changed |= {name for name in (*mpm.sizes, *mpm.limits) if name in config}
    lines = {
        name: _write_line(name, config[name], current[name], facts)
        # Limits first: what they have no room for would be lowered where it is read.
        for name in sorted(changed, key=lambda name: (name not in mpm.limits, name))
        if config[name] != before.values[name]
    }
    if not changed:
        return {}
    place = find_place(tree)
    text = _kept_lines(tree.files.get(place), lines) + "".join(f"{line}\n" for line in lines.values())
    _verify(config, changed, lines, _with_file(tree, place, text), place, facts)
    return {place: text.encode()}


def _with_file(tree: Tree, path: PurePosixPath, text: str) -> Tree:
    return replace(tree, files={**tree.files, path: text.encode()})


def _kept_lines(installed: bytes | None, lines: Mapping[str, str]) -> str:
    """Keep what a drop-in that is there already sets besides."""
    if installed is None:
        return f"# {DROP_IN_HEAD}\n"
    set_again = {name.lower() for name in lines}
    kept = [
        line
        for _, line in logical_lines(installed.decode(errors="replace"))
        if line and line.split()[0].lower() not in set_again
    ]
    return "".join(f"{line}\n" for line in kept)


def _refuse_unknown(name: str, settings: Settings) -> None:
    if name in settings.values:
        return
    reason = find_withheld(settings).get(name, UNKNOWN)
    raise ConfigRejected(f"apache: {name[:80]!r} cannot be changed on this host: {reason}. {REMEDY}")


def _write_line(name: str, value: Scalar, like: Scalar, facts: Facts) -> str:
    word = write_value(name, value, like)
    match name:
        case "AcceptFilter":
            return f"AcceptFilter http {word}"
        case "RequestReadTimeout":
            limits = "header=20-40,minrate=500 body=10,minrate=500" if value else "header=0 body=0"
            return f"RequestReadTimeout {limits}"
        case "ListenCoresBucketsRatio" if value == 0:
            # A syntax error when written; one listener for all CPUs is the same (server/listen.c).
            return f"ListenCoresBucketsRatio {facts.cores}"
    return f"{name} {word}"


def _verify(
    config: Config,
    changed: set[str],
    lines: Mapping[str, str],
    tree: Tree,
    place: PurePosixPath,
    facts: Facts,
) -> None:
    """Read the whole configuration again with the drop-in in it: what was asked must come out."""
    after = read_settings(read_directives(tree), facts)
    for name in lines:
        if name not in after.written:
            raise ConfigRejected(f"apache: {config[name]} is no value of {name}. Correct the search space.")
        if not after.written[name].startswith(f"{place}:"):
            raise TargetError(
                f"apache: {after.written[name]} sets {name} after {place}, and so overrides the value there. "
                f"Move that line before the Include. {REMEDY}"
            )
    found, mpm = in_force(after, facts), loaded_mpm(facts)
    for name, value in config.items():
        if found[name] != value and (name in changed or name not in mpm.limits):
            raise ConfigRejected(
                f"apache: with the other settings, the {mpm.name} MPM changes {name} {value} to "
                f"{found[name]}. Correct the search space."
            )
