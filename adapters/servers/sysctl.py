"""Kernel settings under /proc/sys (Documentation/admin-guide/sysctl/), as a server without a process.

A parameter is a key, or one element of a key that holds several numbers: `net.ipv4.tcp_wmem[1]`.
"""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, ClassVar

from tuner.errors import ConfigRejected, TargetError, UsageError
from tuner.kit import mounts
from tuner.ports import (
    Argv,
    Command,
    Completed,
    Config,
    Facts,
    FileReader,
    Files,
    FileState,
    Host,
    Installation,
    InstalledServer,
    Needs,
    PrivateServer,
    Process,
    Scalar,
    Site,
)

_ROOT = PurePosixPath("/proc/sys")
_READ = ("/proc/sys/net/core", "/proc/sys/net/ipv4", "/proc/sys/net/ipv6", "/proc/sys/net/unix")
_READ_OF_A_MACHINE = (*_READ, "/proc/sys/fs", "/proc/sys/kernel", "/proc/sys/vm")
# Directories below these hold one file per interface, caches or chance; no space has parameters there.
_NOT_READ = ("conf", "neigh", "route", "random")
# Secrets, which must not get into what is stored: tcp_fastopen_key, netdev_rss_key.
_SECRETS = "*_key"
LARGEST = 2**64 - 1
"""No key holds a larger number."""
_NO_LIMIT = 10**18
"""From here on a limit is none; systemd sets fs.file-max to 2^63 - 1 (systemd-system.conf(5), v240)."""
_NAME = re.compile(r"(?P<key>[a-z][\w-]*(?:\.[\w/-]+)+)(?:\[(?P<index>\d+)\])?")
_ORDERED = frozenset({"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.ip_local_port_range"})
_EITHER = (
    ("vm.dirty_ratio", "vm.dirty_bytes"),
    ("vm.dirty_background_ratio", "vm.dirty_background_bytes"),
)
"""Of a pair, writing one sets the other to 0 (Documentation/admin-guide/sysctl/vm.rst), and bytes cannot be
written as 0 again (mm/page-writeback.c, dirty_bytes_min): then no original would bring both back."""

# Protections; they are never traded for speed, whatever a space says.
_DENIED = re.compile(
    r"kernel\.(?:randomize_va_space|kptr_restrict|dmesg_restrict|perf_event_paranoid|modules_disabled|yama\..*"
    r"|unprivileged_.*|kexec_load_disabled|sysrq|core_pattern|suid_dumpable)"
    r"|fs\.(?:protected_.*|suid_dumpable)|vm\.(?:mmap_min_addr|mmap_rnd.*|overcommit_.*)"
    r"|net\.core\.bpf_jit_harden"
    r"|net\.ipv[46]\.(?:tcp_syncookies|tcp_rfc1337|tcp_challenge_ack_limit|tcp_invalid_ratelimit|icmp_.*|ip_forward"
    r"|ip_unprivileged_port_start|tcp_mem|udp_mem|tcp_max_orphans)"
    r"|net\.ipv[46]\..*(?:rp_filter|redirects|source_route|forwarding|log_martians|arp_.*|proxy_arp.*|accept_ra.*)"
)


class Sysctl:
    """The server adapter for kernel settings."""

    name: ClassVar[str] = "sysctl"
    package: ClassVar[str] = ""
    denied: ClassVar[tuple[str, ...]] = ()  # no space of any server may tune security settings of the kernel

    def detect(self, host: Host) -> Facts:
        listed = host.run(_list_command(_READ), timeout_s=10.0)
        release = host.read(PurePosixPath("/proc/sys/kernel/osrelease"))
        return Facts(version=_parse_version(_text(release)), current=_read_listing(listed, host), port=None)

    def find(self, host: Host) -> Installation:
        """Read what is active on the machine itself, as far as it can be changed.

        A container may see all keys and change none: what is not in `facts.current` is left alone.
        """
        listed, writable, mounted, release = host.run_all(
            (
                Command(argv=_list_command(_READ_OF_A_MACHINE), may_fail=True),
                Command(argv=("find", *_READ_OF_A_MACHINE, "-type", "f", "-perm", "/200"), may_fail=True),
                Command(argv=mounts.LIST),
                Command(argv=("uname", "-r")),
            )
        )
        is_read_only = mounts.find_read_only(mounted.stdout.decode(errors="replace"))
        paths = map(PurePosixPath, writable.stdout.decode(errors="replace").splitlines())
        keys = {_key_of(path) for path in paths if not is_read_only(path)}
        readable = _read_listing(listed, host)
        withheld = _find_withheld(readable)
        current = {
            name: value
            for name, value in readable.items()
            if name.partition("[")[0] in keys and name not in withheld
        }
        if not current:
            raise TargetError(
                f"{host.name}: {_ROOT} is read-only here, for example in a container. Tune the machine that "
                "runs the container, or leave sysctl out of `servers:`."
            )
        version = _parse_version(release.stdout.decode(errors="replace"))
        facts = Facts(version=version, current=current, withheld=withheld, port=None)
        return Installation(facts=facts, files={}, service=None)

    def rewrite(self, config: Config, installation: Installation) -> Files:
        facts, current = installation.facts, installation.facts.current
        for name, value in config.items():
            _split_name(name)
            _refuse_nonsense(name, value, facts)
        changed = {name: value for name, value in config.items() if _show(value) != _show(current[name])}
        return self._write(changed, facts)

    def needs(self, config: Config) -> Needs:
        return Needs()

    def in_force(
        self, host: Host, look: FileReader, config: Config, installation: Installation, pid: int
    ) -> Config:
        return _read_back(look, config)

    def render(self, config: Config, site: Site, facts: Facts) -> Files:
        return self._write(config, facts)

    def _write(self, config: Config, facts: Facts) -> Files:
        whole: dict[str, Scalar] = {}
        elements: dict[str, dict[int, Scalar]] = {}
        for name, value in config.items():
            key, index = _split_name(name)
            _refuse_nonsense(name, value, facts)
            if index is None:
                whole[key] = value
            else:
                elements.setdefault(key, {})[index] = value
        vectors = {key: _complete_vector(key, given, facts.current) for key, given in elements.items()}
        return {
            path_of(key): f"{text}\n".encode()
            for key, text in {**{key: _show(value) for key, value in whole.items()}, **vectors}.items()
        }

    def check(self, site: Site, facts: Facts) -> Argv | None:
        return None

    def refusals(self, checked: Completed) -> tuple[str, ...]:
        return ()

    def start(self, site: Site, facts: Facts) -> Argv | None:
        return None

    def effective(
        self, host: Host, config: Config, site: Site, facts: Facts, process: Process | None
    ) -> Config:
        return _read_back(host, config)

    def complaints(self, log: bytes) -> tuple[str, ...]:
        return ()


def path_of(key: str) -> PurePosixPath:
    """Turn a key into its file, as sysctl(8) does: dots separate, and a slash stands for a dot in a name."""
    return _ROOT.joinpath(*(part.replace("/", ".") for part in key.split(".")))


def _key_of(path: PurePosixPath) -> str:
    return ".".join(part.replace(".", "/") for part in path.relative_to(_ROOT).parts)


def _split_name(name: str) -> tuple[str, int | None]:
    matched = _NAME.fullmatch(name)
    if matched is None or ".." in name or "//" in name:
        raise UsageError(
            f"sysctl: {name[:80]!r} is no key. Write it like net.core.somaxconn, net.ipv4.tcp_wmem[1]."
        )
    if _DENIED.fullmatch(matched["key"]):
        protected = f"sysctl: {matched['key']} protects the machine and is never tuned."
        raise UsageError(f"{protected} Remove this setting from the search space.")
    return matched["key"], int(matched["index"]) if matched["index"] else None


def _refuse_nonsense(name: str, value: Scalar, facts: Facts) -> None:
    """Raise ConfigRejected for a key that may not be changed here, and for what is no value of its kind."""
    current = facts.current
    if name not in current:
        reason = facts.withheld.get(name, "this host does not have this setting, or has it read-only")
        raise ConfigRejected(
            f"sysctl: {name}: {reason}. Leave this setting out of the search space with `without:`."
        )
    # The kernel accepts most of it: tcp_fin_timeout -1, somaxconn 0, tcp_rmem "1 1 1" were taken by 6.18.
    if isinstance(value, float) or (isinstance(value, int) and not 0 <= value <= LARGEST):
        raise ConfigRejected(f"sysctl: {name} = {value} is not a whole number from 0. Correct its range.")
    if isinstance(value, str) and not re.fullmatch(r"[\w.\- \t]+", value, re.ASCII):
        raise ConfigRejected(
            f"sysctl: {name} = {value[:80]!r} has characters that no key accepts. Correct its choices."
        )
    if isinstance(current[name], int) and not re.fullmatch(r"\d+", _show(value), re.ASCII):
        raise ConfigRejected(
            f"sysctl: {name} = {_show(value)[:80]!r} is not one number. Correct its choices."
        )


def _find_withheld(readable: Config) -> dict[str, str]:
    """Return why keys are left alone: no original would bring them back, or they limit nothing."""
    endless = (name for name, value in readable.items() if isinstance(value, int) and value >= _NO_LIMIT)
    return dict.fromkeys(endless, "its value on this host is so large that it limits nothing") | {
        name: f"this host sets {other} instead, and a change of this key would set {other} to 0 permanently"
        for pair in _EITHER
        for name, other in (pair, pair[::-1])
        if readable.get(name) == 0 and other in readable
    }


def _read_back(look: FileReader, config: Config) -> dict[str, Scalar]:
    found: dict[str, Scalar] = {}
    for key in {_split_name(name)[0] for name in config}:
        found |= _parse_value(key, _text(look.read(path_of(key))))
    return {name: _as_asked(found[name], asked) for name, asked in config.items() if name in found}


def _list_command(directories: tuple[str, ...]) -> Argv:
    excluded = (f"--exclude-dir={name}" for name in _NOT_READ)
    # -s: some files are write-only; grep then exits with 2 after it has printed the others.
    return ("grep", "-rs", f"--exclude={_SECRETS}", *excluded, "", *directories)


def _read_listing(listed: Completed, host: Host) -> dict[str, Scalar]:
    current = _parse_listing(listed.stdout.decode(errors="replace"))
    if not current:
        raise TargetError(f"{host.name}: tuner can read nothing below {_READ[1]}. Mount /proc on this host.")
    return current


def _parse_version(release: str) -> tuple[int, ...]:
    numbers = re.match(r"\d+(?:\.\d+)*", release)
    return tuple(int(part) for part in numbers[0].split(".")) if numbers else ()


def _complete_vector(key: str, given: Mapping[int, Scalar], current: Mapping[str, Scalar]) -> str:
    length = sum(name.startswith(f"{key}[") for name in current)
    if max(given) >= length:
        wrong = f"sysctl: {key} has {length} elements on this kernel, not {max(given) + 1}."
        raise ConfigRejected(f"{wrong} Remove {key}[{max(given)}] from the search space.")
    numbers = [int(given.get(index, current[f"{key}[{index}]"])) for index in range(length)]
    if key in _ORDERED and numbers != sorted(numbers):
        raise ConfigRejected(f"sysctl: {key} = {numbers} is not in rising order. Constrain its elements.")
    return "\t".join(str(number) for number in numbers)


def _parse_listing(printed: str) -> dict[str, Scalar]:
    current: dict[str, Scalar] = {}
    for line in printed.splitlines():
        path, _, text = line.partition(":")
        current |= _parse_value(_key_of(PurePosixPath(path)), text)
    return current


def _parse_value(key: str, text: str) -> dict[str, Scalar]:
    """Read a number, several numbers by element, or a word."""
    words = text.split()
    if len(words) > 1 and all(re.fullmatch(r"-?\d+", word) for word in words):
        return {f"{key}[{index}]": int(word) for index, word in enumerate(words)}
    value = " ".join(words)
    return {key: int(value) if re.fullmatch(r"-?\d+", value) else value} if words else {}


def _as_asked(value: Scalar, asked: Scalar) -> Scalar:
    return bool(value) if isinstance(asked, bool) and value in {0, 1} else value


def _show(value: Scalar) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _text(state: FileState) -> str:
    return (state.content or b"").decode(errors="replace")


if TYPE_CHECKING:
    _private: PrivateServer = Sysctl()
    _installed: InstalledServer = Sysctl()
