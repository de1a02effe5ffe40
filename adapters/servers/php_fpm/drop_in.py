"""Write the one file that makes a pool of an installed php-fpm run with other settings."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from tuner.adapters.servers.php_fpm.installation import KEYS, SPARE, layout_of
from tuner.adapters.servers.php_fpm.pools import INCLUDE, Layout
from tuner.adapters.servers.php_fpm.private import OF_OPCACHE, SOCKET
from tuner.errors import ConfigRejected, TargetError
from tuner.kit.config_files import DROP_IN_HEAD, DROP_IN_NAME
from tuner.ports import Config, Files, Installation, Scalar

_KINDS_OF_PM = ("static", "dynamic", "ondemand")
_ALLOWED_POOL = re.compile(r"[\w.-]+")


def write_drop_in(config: Config, installation: Installation) -> Files:
    """Give the drop-in, or nothing when the configuration is what is active.

    Raises:
        ConfigRejected: a value that is none of its setting's.
        TargetError: the pool cannot be opened again, no drop-in would be read, or a line after it wins.
    """
    current, layout = installation.facts.current, layout_of(installation)
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
    return _write_file(lines, installation.files, layout)


def _refuse_nonsense(name: str, value: Scalar, current: Mapping[str, Scalar]) -> None:
    """Refuse what is not one value of the setting: it never reaches a file."""
    if name in OF_OPCACHE:
        raise ConfigRejected(
            f"php-fpm: {name} is set in php.ini for all pools. Change this setting in php.ini by hand."
        )
    if name == SOCKET:
        raise ConfigRejected(
            f"php-fpm: {name} is also part of the web server's configuration. Change both configurations by "
            "hand."
        )
    if name not in current:
        raise ConfigRejected(
            f"php-fpm: {name[:80]!r} is no setting of this pool with a known value. Leave this setting out "
            "of the search space with `without:`."
        )
    is_one = value in _KINDS_OF_PM if name == "pm" else type(value) is type(current[name])
    if not is_one:
        raise ConfigRejected(
            f"php-fpm: {name} = {str(value)[:80]!r} is not one value. Correct the search space."
        )


def _show(value: Scalar) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _write_file(lines: Mapping[str, str], files: Files, layout: Layout) -> Files:
    """Write the file that is read last. Raises TargetError when none would be, or another comes after."""
    pool = layout.pool
    if not _ALLOWED_POOL.fullmatch(pool):
        raise TargetError(f"php-fpm: tuner cannot write the pool name {pool!r}. Rename the pool.")
    place = _find_place(files, layout)
    kept = _kept_lines(files.get(place), lines)
    text = "".join(f"{line}\n" for line in (*kept, f"[{pool}]", *lines.values()))
    after = {**files, place: text.encode()}
    last = {entry.key: entry for entry in layout.read_entries(after) if entry.section == pool}
    for key in lines:
        if last[key].path != place:
            raise TargetError(
                f"php-fpm: {last[key].path}:{last[key].line} sets {key} after {place}, and so overrides the "
                "value there. Move that line, or leave the setting out of the search space with `without:`."
            )
    return {place: text.encode()}


def _find_place(files: Files, layout: Layout) -> PurePosixPath:
    """Return the file that would be included last. Raises TargetError when none would be."""
    patterns = [layout.prefix / each.value for each in layout.read_entries(files) if each.key == INCLUDE]
    for pattern in reversed(patterns):
        if re.fullmatch(r"[^*?[]+/\*[^*?[/]*", str(pattern)):
            return pattern.with_name(f"{PurePosixPath(DROP_IN_NAME).stem}{pattern.name[1:]}")
    raise TargetError(
        f"php-fpm: {layout.main} includes no directory for additional settings. Add a line at the end of "
        f"this file: include={layout.main.parent}/pool.d/*.conf"
    )


def _kept_lines(installed: bytes | None, lines: Mapping[str, str]) -> list[str]:
    """Keep what a drop-in that is there already sets besides."""
    if installed is None:
        return [f"; {DROP_IN_HEAD}"]
    written = installed.decode(errors="replace").splitlines()
    return [line for line in written if line.partition("=")[0].strip() not in lines]
