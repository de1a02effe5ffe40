"""Reads what runs and is mounted on a host besides what is tuned: the facts from which conflicts follow."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from tuner.errors import TargetError
from tuner.ports import Command, Completed, Host

HEAD_BYTES = 4096
SHOW_SYSCTLS = r"""
for file in /etc/sysctl.d/*.conf /run/sysctl.d/*.conf /usr/local/lib/sysctl.d/*.conf \
    /usr/lib/sysctl.d/*.conf /lib/sysctl.d/*.conf /etc/sysctl.conf; do
  if [ -r "$file" ]; then printf '\036%s\n' "$file"; cat -- "$file"; fi
done
"""
SHOW_PROFILES = r"""
for pid; do
  profile=; read -r profile <"/proc/$pid/attr/current"; printf '%s %s\n' "$pid" "$profile"
done
"""
LOCKS = (
    PurePosixPath("/var/lib/dpkg/lock-frontend"),
    PurePosixPath("/var/lib/dpkg/lock"),
    PurePosixPath("/run/unattended-upgrades.lock"),
    PurePosixPath("/var/lib/rpm/.rpm.lock"),
    PurePosixPath("/etc/letsencrypt/.certbot.lock"),
    PurePosixPath("/var/lib/letsencrypt/.certbot.lock"),
)
"""Which programs lock for writing while they are at work: dpkg and apt, unattended-upgrades, rpm, certbot."""
# A lock file stays when nobody holds it; who does is in /proc/locks, by the file's number (proc(5)).
SHOW_LOCKS = r"""
for file; do
  number=$(stat -L -c %i -- "$file" 2>/dev/null) && grep -q " WRITE .*:$number " /proc/locks && echo "$file"
done
"""
TIMERS = (
    "certbot.timer",
    "snap.certbot.renew.timer",
    "acme.timer",
    "apt-daily-upgrade.timer",
    "dnf-automatic.timer",
    "dnf-automatic-install.timer",
)
"""What replaces files or restarts services by itself."""
SHOW_TIMERS = r"""
if [ -d /run/systemd/system ]; then
  for timer; do
    systemctl is-active --quiet -- "$timer" && printf '%s\n' "$timer"
  done
elif [ -e /etc/cron.d/certbot ]; then
  echo /etc/cron.d/certbot
fi
"""
# What systemd stops when it stops a service, as the keeper finds it, too.
SHOW_ALONG = r"""
properties=RequiredBy,RequisiteOf,BoundBy,ConsistsOf,PropagatesStopTo,TriggeredBy
[ -d /run/systemd/system ] || exit 0
for service; do
  known=" $service $service.service " queue=$service
  while [ -n "$queue" ]; do
    found=$(systemctl show --value "--property=$properties" -- $queue)
    queue=
    for unit in $found; do
      case $known in *" $unit "*) continue ;; esac
      known="$known$unit " queue="$queue $unit"
      systemctl is-active --quiet -- "$unit" && printf '%s %s\n' "$service" "$unit"
    done
  done
done
"""
TRIGGERS = PurePosixPath("/var/lib/dpkg/triggers/Unincorp")
"""What dpkg has still to do for packages that were changed (deb-triggers(5))."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """What a host showed, in one batch of commands."""

    processes: frozenset[str]
    """Names as the kernel keeps them, of 15 letters at the most."""
    profile: str
    """Of TuneD; empty without one."""
    sysctls: Mapping[PurePosixPath, str]
    """Files that set kernel keys at boot → content."""
    has_systemd: bool
    mounts: Mapping[PurePosixPath, frozenset[str]]
    """Mount point → options of what was mounted there last."""
    container: str
    """Which kind the host is, or empty."""
    is_selinux_enforcing: bool
    free_kib: int | None
    """In /var/lib."""
    confined: Mapping[int, str]
    """Process → AppArmor profile, where it is enforced."""
    heads: Mapping[PurePosixPath, str]
    """Files that will be changed → how they begin."""
    locked: frozenset[PurePosixPath] = frozenset()
    """Of `LOCKS`, those that somebody holds."""
    timers: frozenset[str] = frozenset()
    """Of `TIMERS`, and cron's own job of certbot, those that will fire."""
    has_triggers: bool = False
    """Whether dpkg has triggers left to run."""
    along: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Service → units that systemd stops and restarts with it."""

    def mount_of(self, path: PurePosixPath) -> PurePosixPath:
        """Return where the mount is that a path is on."""
        return next((point for point in (path, *path.parents) if point in self.mounts), PurePosixPath("/"))


def take_inventory(
    host: Host, files: Sequence[PurePosixPath], pids: Sequence[int], services: Sequence[str] = ()
) -> Inventory:
    """Read everything in one round trip. Raises TargetError when the host cannot be asked.

    Args:
        host: which is going to be tuned.
        files: that will be changed.
        pids: first processes of the services.
        services: their names.
    """
    commands = (
        _shell("cat /proc/[0-9]*/comm"),
        _shell("cat /etc/tuned/active_profile"),
        _shell(SHOW_SYSCTLS),
        _shell("ls -d /run/systemd/system"),
        _shell("cat /proc/self/mounts"),
        _shell("systemd-detect-virt --container || ls -d /.dockerenv /run/.containerenv"),
        _shell("cat /sys/fs/selinux/enforce"),
        _shell("df -Pk /var/lib"),
        _shell(SHOW_PROFILES, *map(str, pids)),
        _shell(SHOW_LOCKS, *map(str, LOCKS)),
        _shell(SHOW_TIMERS, *TIMERS),
        _shell('test -s "$1" && echo "$1"', str(TRIGGERS)),
        _shell(SHOW_ALONG, *services),
        *(_shell('head -c "$1" -- "$2"', str(HEAD_BYTES), str(path)) for path in files),
    )
    done = host.run_all(commands)
    if len(done) < len(commands):
        raise TargetError(
            f"{host.name}: tuner cannot list the programs that run on this host. Check that the host still "
            "answers."
        )
    texts = [_text(each) for each in done]
    processes, profile, sysctls, systemd, mounts, container, enforcing, free, confined = texts[:9]
    locked, timers, triggers, along, *heads = texts[9:]
    return Inventory(
        processes=frozenset(processes.split("\n")),
        profile=profile.strip(),
        sysctls=_sections(sysctls),
        has_systemd=bool(systemd.strip()),
        mounts=_mounts(mounts),
        container=_container(container),
        is_selinux_enforcing=enforcing.strip() == "1",
        free_kib=_free_kib(free),
        confined=dict(_enforced(confined)),
        heads=dict(zip(files, heads, strict=True)),
        locked=frozenset(map(PurePosixPath, locked.splitlines())),
        timers=frozenset(timers.splitlines()),
        has_triggers=bool(triggers.strip()),
        along=_along(along),
    )


def _shell(script: str, *arguments: str) -> Command:
    """Run a script of this file; what differs from host to host is an argument, never part of it."""
    return Command(argv=("sh", "-c", script, "look", *arguments), may_fail=True)


def _text(completed: Completed) -> str:
    return completed.stdout.decode(errors="replace")


def _sections(printed: str) -> dict[PurePosixPath, str]:
    sections = (section.partition("\n") for section in printed.split("\x1e")[1:])
    return {PurePosixPath(path): content for path, _, content in sections}


def _along(printed: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in printed.splitlines():
        service, _, unit = line.partition(" ")
        found.setdefault(service, []).append(unit)
    return found


def _mounts(printed: str) -> dict[PurePosixPath, frozenset[str]]:
    """Read /proc/self/mounts (fstab(5)): what is mounted later covers what was there."""
    found: dict[PurePosixPath, frozenset[str]] = {}
    for line in printed.splitlines():
        words = line.split()
        if len(words) >= 4:  # noqa: PLR2004 - device, place, type, options
            place = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), words[1])
            found[PurePosixPath(place)] = frozenset(words[3].split(","))
    return found


def _container(printed: str) -> str:
    words = printed.split()
    if not words or words[0] == "none":
        return next((PurePosixPath(word).name for word in words if word.startswith("/")), "")
    return PurePosixPath(words[0]).name


def _free_kib(printed: str) -> int | None:
    words = printed.splitlines()[-1].split() if printed.strip() else []
    is_whole = len(words) >= 6 and re.fullmatch(r"[0-9]{1,20}", words[3], re.ASCII) is not None  # noqa: PLR2004 - df(1)
    return int(words[3]) if is_whole else None


def _enforced(printed: str) -> Iterator[tuple[int, str]]:
    for line in printed.splitlines():
        pid, _, profile = line.partition(" ")
        if profile.endswith("(enforce)"):
            yield int(pid), profile.removesuffix("(enforce)").strip()
