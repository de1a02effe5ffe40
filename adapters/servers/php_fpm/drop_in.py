"""Write the one file that makes a pool of an installed php-fpm run with other settings."""

import re
from collections.abc import Mapping

from tuner.adapters.servers.php_fpm.installation import KEYS, SPARE, pool_of
from tuner.adapters.servers.php_fpm.pools import included_directories, read_entries
from tuner.adapters.servers.php_fpm.private import OF_OPCACHE, SOCKET
from tuner.errors import ConfigRejected, TargetError
from tuner.kit.config_files import DROP_IN_HEAD, DROP_IN_NAME
from tuner.ports import Config, Files, Installation, Scalar

_KINDS_OF_PM = ("static", "dynamic", "ondemand")
_ALLOWED_POOL = re.compile(r"[\w.-]+")


def write_drop_in(config: Config, installation: Installation) -> Files:
    """Give the drop-in, or nothing when the configuration is what is in force.

    Raises:
        ConfigRejected: a value that is none of its setting's.
        TargetError: the pool cannot be opened again, no drop-in would be read, or a line after it wins.
    """
    current = installation.facts.current
    for name, value in config.items():
        _refuse_nonsense(name, value, current)
    changed = {name for name, value in config.items() if value != current[name]}
    if not changed:
        return {}
    if "pm" in changed:
        # What another kind of pool does not read may stand there with any value, or not at all.
        changed.update(name for name in SPARE if name in config)
    asked = {KEYS.get(name, name): config[name] for name in config if name in changed}
    lines = {key: f"{key} = {_show(value)}" for key, value in asked.items()}
    return _write_file(lines, installation)


def _refuse_nonsense(name: str, value: Scalar, current: Mapping[str, Scalar]) -> None:
    """Refuse what is not one value of the setting: it never reaches a file."""
    if name in OF_OPCACHE:
        raise ConfigRejected(f"php-fpm: {name} is set in php.ini, for all pools. Write it there by hand.")
    if name == SOCKET:
        raise ConfigRejected(
            f"php-fpm: {name} stands in the web server's configuration, too. Change both by hand."
        )
    if name not in current:
        raise ConfigRejected(
            f"php-fpm: {name[:80]!r} is no setting of a pool here whose value is known. "
            "Leave it out of the space with `without:`."
        )
    is_one = value in _KINDS_OF_PM if name == "pm" else type(value) is type(current[name])
    if not is_one:
        raise ConfigRejected(f"php-fpm: {name} = {str(value)[:80]!r} is not one value. Correct the space.")


def _show(value: Scalar) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _write_file(lines: Mapping[str, str], installation: Installation) -> Files:
    """Write the file that is read last. Raises TargetError when none would be, or another comes after."""
    files = installation.files
    main, pool = pool_of(files)
    if not _ALLOWED_POOL.fullmatch(pool):
        raise TargetError(f"php-fpm: the pool {pool!r} has a name that cannot be written again. Rename it.")
    places = included_directories(files, main)
    if not places:
        raise TargetError(
            f"php-fpm: {main} includes no directory where settings could be added. Add a line at its end: "
            f"include={main.parent}/pool.d/*.conf"
        )
    place = places[0] / DROP_IN_NAME
    kept = _kept_lines(files.get(place), lines)
    text = "".join(f"{line}\n" for line in (*kept, f"[{pool}]", *lines.values()))
    after = {**files, place: text.encode()}
    last = {entry.key: entry for entry in read_entries(after, main) if entry.section == pool}
    for key in lines:
        if last[key].path != place:
            raise TargetError(
                f"php-fpm: {last[key].path}:{last[key].line} sets {key} after {place} is read, and so wins. "
                "Move that line, or leave the setting out of the space with `without:`."
            )
    return {place: text.encode()}


def _kept_lines(installed: bytes | None, lines: Mapping[str, str]) -> list[str]:
    """Keep what a drop-in that is there already sets besides."""
    if installed is None:
        return [f"; {DROP_IN_HEAD}"]
    written = installed.decode(errors="replace").splitlines()
    return [line for line in written if line.partition("=")[0].strip() not in lines]
