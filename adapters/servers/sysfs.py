"""Kernel settings under /sys: huge pages, CPU frequency, queues of network cards. A server without a process.

A parameter may be one file, or one of each CPU policy, network card or queue: all of these get its value. The
cards are those with a device behind them; what containers have (veth, bridges) is left alone.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, ClassVar

from tuner.errors import ConfigRejected
from tuner.kit import mounts, programs
from tuner.ports import (
    Command,
    Completed,
    Config,
    Facts,
    FileReader,
    Files,
    Host,
    Installation,
    InstalledServer,
    Needs,
    Scalar,
)

NONE, ALL, SPREAD = "none", "all", "spread"
"""CPUs of a queue: none, all that are online, or its share of them, so that each CPU belongs to one queue."""
LARGEST = 2**31 - 1
"""No number here may be larger."""
_LIST = """
for file in /sys/kernel/mm/transparent_hugepage/enabled /sys/kernel/mm/transparent_hugepage/defrag \\
    /sys/devices/system/cpu/cpufreq/policy*/scaling_governor \\
    /sys/devices/system/cpu/cpufreq/policy*/scaling_available_governors \\
    /sys/devices/system/cpu/online \\
    /sys/class/net/*/tx_queue_len /sys/class/net/*/gro_flush_timeout /sys/class/net/*/napi_defer_hard_irqs \\
    /sys/class/net/*/threaded /sys/class/net/*/queues/rx-*/rps_cpus \\
    /sys/class/net/*/queues/rx-*/rps_flow_cnt /sys/class/net/*/queues/tx-*/xps_cpus; do
    card=${file#/sys/class/net/}
    [ "$card" = "$file" ] || [ -e "/sys/class/net/${card%%/*}/device" ] || continue
    # Some cannot be read on a card with one queue.
    if value=$(cat "$file" 2>/dev/null); then printf '%s\\t%s\\n' "$file" "$value"; fi
done
"""
_Values = Mapping[PurePosixPath, str]
_Cpus = Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """A parameter as files."""

    place: str
    """The files; * stands for part of one name."""
    read: Callable[[_Values, _Cpus], Scalar | None]
    """Returns the value that all of them have; None where no single value says it."""
    write: Callable[[Scalar, Sequence[PurePosixPath], _Cpus], Files]
    words: Callable[[_Values], Collection[str]] | None = None
    """Returns what may be written, of all files that were read; None for whole numbers."""

    def find(self, files: Collection[PurePosixPath]) -> list[PurePosixPath]:
        """Return which of these files are its own."""
        pattern = re.compile(re.escape(self.place).replace(r"\*", "[^/]+"))
        return [path for path in files if pattern.fullmatch(str(path))]


class Sysfs:
    """The server adapter for kernel settings under /sys."""

    name: ClassVar[str] = "sysfs"
    package: ClassVar[str] = ""
    denied: ClassVar[tuple[str, ...]] = ()  # it writes no other files than those of its own settings

    def detect(self, host: Host) -> Facts:
        release = host.run(("uname", "-r"), timeout_s=programs.COMMAND_TIMEOUT_S)
        return Facts(version=_parse_version(release), cores=programs.read_online_cpus(host), port=None)

    def find(self, host: Host) -> Installation:
        """Read what can be changed here; what is left alone is in `facts.withheld` with the reason."""
        listed, mounted, release = host.run_all(
            (
                Command(argv=("sh", "-c", _LIST), may_fail=True),
                Command(argv=mounts.LIST),
                Command(argv=("uname", "-r")),
            )
        )
        there = _parse_listing(listed.stdout.decode(errors="replace"))
        cpus = _cpus_in(there)
        is_read_only = mounts.find_read_only(mounted.stdout.decode(errors="replace"))
        current: dict[str, Scalar] = {}
        withheld: dict[str, str] = {}
        for name, setting in _SETTINGS.items():
            values = {path: there[path] for path in setting.find(there)}
            value = setting.read(values, cpus)
            if value is None or any(map(is_read_only, values)):
                withheld[name] = _say_why(setting, values, is_known=value is not None)
            else:
                current[name] = value
        files = {path: f"{text}\n".encode() for path, text in there.items()}
        facts = Facts(
            version=_parse_version(release), current=current, withheld=withheld, cores=len(cpus), port=None
        )
        return Installation(facts=facts, files=files, service=None)

    def rewrite(self, config: Config, installation: Installation) -> Files:
        there, current = _texts_of(installation.files), installation.facts.current
        changed: dict[PurePosixPath, bytes] = {}
        for name, value in config.items():
            _refuse_nonsense(name, value, there, installation.facts)
            if value != current[name]:
                setting = _SETTINGS[name]
                changed |= setting.write(value, setting.find(there), _cpus_in(there))
        return changed

    def needs(self, config: Config) -> Needs:
        return Needs()

    def refusals(self, checked: Completed) -> tuple[str, ...]:
        return ()

    def in_force(
        self, host: Host, look: FileReader, config: Config, installation: Installation, pid: int
    ) -> Config:
        cpus = _cpus_in(_texts_of(installation.files))
        found: dict[str, Scalar] = {}
        for name in config.keys() & _SETTINGS.keys():
            setting = _SETTINGS[name]
            paths = setting.find(installation.files)
            values = _texts_of({path: look.read(path).content or b"" for path in paths})
            value = setting.read(values, cpus)
            found[name] = _say_values(values) if value is None else value
        return found

    def complaints(self, log: bytes) -> tuple[str, ...]:
        return ()


def _parse_listing(printed: str) -> dict[PurePosixPath, str]:
    parts = (line.partition("\t") for line in printed.splitlines())
    return {PurePosixPath(path): text for path, _, text in parts}


def _parse_version(release: Completed) -> tuple[int, ...]:
    numbers = re.match(r"\d+(?:\.\d+)*", release.stdout.decode(errors="replace"))
    return tuple(int(part) for part in numbers[0].split(".")) if numbers else ()


def _cpus_in(there: _Values) -> tuple[int, ...]:
    return programs.parse_cpus(there.get(programs.ONLINE_CPUS, "0"))


def _texts_of(files: Files) -> dict[PurePosixPath, str]:
    return {path: content.decode(errors="replace").strip() for path, content in files.items()}


def _say_why(setting: _Setting, values: _Values, *, is_known: bool) -> str:
    """Return why a setting is left alone."""
    if not values:
        return f"this host has no {setting.place}"
    return (
        ("this setting is read-only on this host")
        if is_known
        else f"its files have no common value: {_say_values(values)}"
    )


def _say_values(values: _Values) -> str:
    return ", ".join(f"{path} {text}" for path, text in values.items()) or "nothing"


def _refuse_nonsense(name: str, value: Scalar, there: _Values, facts: Facts) -> None:
    """Raise ConfigRejected for a setting that is not changed here, and for what its files do not take."""
    if name not in facts.current:
        reason = facts.withheld.get(name, "this is no setting that tuner changes")
        raise ConfigRejected(
            f"sysfs: {name[:80]}: {reason}. Leave this setting out of the search space with `without:`."
        )
    words = _SETTINGS[name].words
    if words is None:
        is_number = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST
        if not is_number:
            told = f"{str(value)[:80]!r} is not a whole number from 0 to {LARGEST}"
            raise ConfigRejected(f"sysfs: {name}: {told}. Correct its range.")
    elif value not in (known := words(there)):
        told = f"{str(value)[:80]!r} is none of {', '.join(sorted(known))}"
        raise ConfigRejected(f"sysfs: {name}: {told}. Correct its choices.")


def _read_marked(values: _Values, _cpus: _Cpus) -> Scalar | None:
    """Return the word in brackets: `always [madvise] never`."""
    marked = (re.search(r"\[([^\]]*)\]", text) for text in values.values())
    return _only(match[1] if match else "" for match in marked)


def _marked_words(place: str) -> Callable[[_Values], Collection[str]]:
    """Return what reads the words of a choice off its file."""
    return lambda there: there[PurePosixPath(place)].replace("[", "").replace("]", "").split()


def _read_word(values: _Values, _cpus: _Cpus) -> Scalar | None:
    return _only(values.values())


def _governors(there: _Values) -> Collection[str]:
    """Return the governors that every policy has."""
    lists = [set(text.split()) for path, text in there.items() if path.name == "scaling_available_governors"]
    return set.intersection(*lists) if lists else set()


def _read_number(values: _Values, _cpus: _Cpus) -> Scalar | None:
    text = _only(values.values())
    return int(text) if text is not None and re.fullmatch(r"\d+", text, re.ASCII) else None


def _only(values: Iterable[str]) -> str | None:
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _write_text(value: Scalar, paths: Sequence[PurePosixPath], _cpus: _Cpus) -> Files:
    return {path: f"{value}\n".encode() for path in paths}


def _read_masks(values: _Values, cpus: _Cpus) -> Scalar | None:
    """Return the word for the CPUs of all queues; None for other masks, and where there is one CPU."""
    found = {path: int(text.replace(",", "") or "0", 16) for path, text in values.items()}
    words = (NONE, ALL, SPREAD) if found and len(cpus) > 1 else ()
    return next((word for word in words if _masks_of(word, list(found), cpus) == found), None)


def _write_masks(value: Scalar, paths: Sequence[PurePosixPath], cpus: _Cpus) -> Files:
    return {path: f"{_show_mask(mask)}\n".encode() for path, mask in _masks_of(value, paths, cpus).items()}


def _masks_of(word: Scalar, paths: Sequence[PurePosixPath], cpus: _Cpus) -> dict[PurePosixPath, int]:
    """Return the bits of the CPUs that each queue has."""
    masks = {}
    for path in paths:
        queues = sorted((each for each in paths if each.parents[1] == path.parents[1]), key=_queue_number)
        share = cpus[queues.index(path) % len(cpus) :: len(queues)]
        own = {NONE: (), ALL: cpus, SPREAD: share}[str(word)]
        masks[path] = sum(1 << cpu for cpu in own)
    return masks


def _queue_number(path: PurePosixPath) -> int:
    return int(path.parent.name.rpartition("-")[2])


def _show_mask(mask: int) -> str:
    """Write bits as the kernel reads them: groups of 32 (lib/bitmap-str.c, bitmap_parse)."""
    digits = f"{mask:x}"
    ends = range(len(digits), 0, -8)
    return ",".join(reversed([digits[max(0, end - 8) : end] for end in ends]))


def _marked(place: str) -> _Setting:
    return _Setting(place=place, read=_read_marked, write=_write_text, words=_marked_words(place))


def _number(place: str) -> _Setting:
    return _Setting(place=place, read=_read_number, write=_write_text)


def _mask(place: str) -> _Setting:
    return _Setting(
        place=place, read=_read_masks, write=_write_masks, words=lambda _there: (NONE, ALL, SPREAD)
    )


_SETTINGS: Mapping[str, _Setting] = {
    "sys.transparent_hugepage.enabled": _marked("/sys/kernel/mm/transparent_hugepage/enabled"),
    "sys.transparent_hugepage.defrag": _marked("/sys/kernel/mm/transparent_hugepage/defrag"),
    "sys.cpufreq.scaling_governor": _Setting(
        place="/sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
        read=_read_word, write=_write_text, words=_governors,
    ),
    "sys.net.tx_queue_len": _number("/sys/class/net/*/tx_queue_len"),
    "sys.net.gro_flush_timeout": _number("/sys/class/net/*/gro_flush_timeout"),
    "sys.net.napi_defer_hard_irqs": _number("/sys/class/net/*/napi_defer_hard_irqs"),
    "sys.net.threaded": _number("/sys/class/net/*/threaded"),
    "sys.net.rps_flow_cnt": _number("/sys/class/net/*/queues/rx-*/rps_flow_cnt"),
    "sys.net.rps_cpus": _mask("/sys/class/net/*/queues/rx-*/rps_cpus"),
    "sys.net.xps_cpus": _mask("/sys/class/net/*/queues/tx-*/xps_cpus"),
}  # fmt: skip


if TYPE_CHECKING:
    _installed: InstalledServer = Sysfs()
