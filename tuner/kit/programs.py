"""Find a server's program on a host, and read what it prints and logs."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import PurePosixPath

from tuner.errors import TargetError, Unreachable
from tuner.kit.builds import name_package, name_programs
from tuner.kit.packages import say_install
from tuner.ports import Build, Command, Completed, Facts, FileReader, Host

COMMAND_TIMEOUT_S = 10.0
MAX_COMPLAINTS = 20
QUOTED_REFUSALS = 5
# FILE:LINE, also with a column; `line N`. The port of a URL stays, as that is no path.
_LINE = re.compile(
    r"(?P<path>(?<![:/\w])/[^\s:'\"\[\]()]+|[\w.-]+\.(?:conf|cfg|ya?ml|ini|inc)\b)(?::\d+)+"
    r"|\bline:? \d+(?:,? column:? \d+)?",
    re.IGNORECASE,
)
# Programs in containers and sandboxes have other files.
_RUNNING = ("sh", "-c", 'exec pgrep --ns $$ --nslist pid,mnt -U 0 "$@"', "running")
ONLINE_CPUS = PurePosixPath("/sys/devices/system/cpu/online")


def find_program(
    host: Host, names: tuple[str, ...], *arguments: str, package: str, named: str = ""
) -> tuple[str, Completed]:
    """Run the first of these programs that exists, or else one of the same name that root runs.

    Args:
        host: where it is looked for.
        names: the program, first as the PATH has it; others as packages install it.
        arguments: with which it prints its version.
        package: what to install where it is missing: its name on Debian, or a `Package`.
        named: the path that the study gives; then no other program is looked for.

    Returns its name and what it printed. Raises TargetError naming the package when none exists, and
    Unreachable when the host cannot be asked.
    """
    if named:
        return named, run_named(host, named, *arguments)
    reason = ""
    for find in (lambda: names, lambda: _find_running(host, names)):
        for name in find():
            try:
                return name, host.run((name, *arguments), timeout_s=COMMAND_TIMEOUT_S)
            except Unreachable:
                raise
            except TargetError as error:
                reason = reason or str(error).removeprefix(f"{host.name}: ").removesuffix(" Install it.")
    places = ", ".join(name for name in names if "/" in name)
    raise TargetError(
        f"{host.name}: {reason} tuner runs this program as root only from {places}. Install the program "
        f"with: {say_install(host, package)}"
    )


def run_named(host: Host, program: str, *arguments: str) -> Completed:
    """Run the program whose path the study gives. Raises TargetError when there is none at that path."""
    try:
        return host.run((program, *arguments), timeout_s=COMMAND_TIMEOUT_S)
    except Unreachable:
        raise
    except TargetError as error:
        raise TargetError(
            f"{host.name}: servers: tuner cannot run the program {program}. Correct `program:`, or leave "
            "`program:` out: then tuner looks for the program itself."
        ) from error


def _find_running(host: Host, names: Sequence[str]) -> list[str]:
    """Return programs of these names that root runs, by their command lines."""
    words = "|".join(dict.fromkeys(re.escape(PurePosixPath(name).name) for name in names))
    # The title of nginx's first process has the program after some words.
    running = list_running(host, f"^([a-z0-9-]+: master process )?/[^ ]*/({words})( |$)")
    program = re.compile(rf"(?:.*? )??(/\S*/(?:{words}))(?: |$)")
    return [found[1] for line in running if (found := program.match(line))]


def list_running(host: Host, pattern: str) -> list[str]:
    """Return the command lines of root's processes that match; those of others may say anything."""
    with suppress(TargetError):
        listed = host.run((*_RUNNING, "-a", "-f", pattern), timeout_s=COMMAND_TIMEOUT_S).stdout
        return [line.partition(" ")[2] for line in listed.decode(errors="replace").splitlines()]
    return []


def find_executables(host: Host, title: str) -> list[str]:
    """Return the programs of root's processes with a title, as far as this user may look at them."""
    with suppress(TargetError):
        running = host.run((*_RUNNING, "-f", title), timeout_s=COMMAND_TIMEOUT_S).stdout.split()
        links = (("readlink", f"/proc/{pid.decode()}/exe") for pid in running)
        done = host.run_all([Command(argv=link, may_fail=True) for link in links])
        return list(dict.fromkeys(each.stdout.decode().strip() for each in done if each.returncode == 0))
    return []


def detect_program(
    host: Host, builds: Sequence[Build], *arguments: str, before: str, named: str = ""
) -> Facts:
    """Return the program, its version and the CPUs of the host, for a server that needs no more.

    Args:
        host: where it is looked for.
        builds: those of the server.
        arguments: with which it prints its version.
        before: what stands before the version, as a regular expression.
        named: the path that the study gives; then no other program is looked for.

    Raises TargetError naming the package when there is none.
    """
    package = name_package(builds)
    program, printed = find_program(host, name_programs(builds), *arguments, package=package, named=named)
    return Facts(
        version=read_version(printed, before, host, package=package),
        program=PurePosixPath(program),
        cores=read_online_cpus(host),
    )


def read_online_cpus(look: FileReader) -> int:
    """Count the CPUs that are online, as sysconf(_SC_NPROCESSORS_ONLN) does in the servers.

    Affinity and CPU quotas do not change it (nginx: src/os/unix/ngx_posix_init.c, Apache: server/listen.c).
    """
    return len(parse_cpus((look.read(ONLINE_CPUS).content or b"0").decode()))


def parse_cpus(text: str) -> tuple[int, ...]:
    """Return the numbers in a list of CPUs as the kernel writes it: `0-3,8`."""
    ranges = text.strip().split(",")
    ends = [(int(part.split("-")[0]), int(part.split("-")[-1])) for part in ranges]
    return tuple(number for first, last in ends for number in range(first, last + 1))


def decode(completed: Completed) -> str:
    """Return what a command printed, stderr first: messages of a check go there."""
    return (completed.stderr + b"\n" + completed.stdout).decode(errors="replace")


def read_version(printed: Completed, before: str, host: Host, *, package: str) -> tuple[int, ...]:
    """Read the version in what a program printed.

    Args:
        printed: what it printed when it was asked (`-v`, `-V`).
        before: what stands before the version, as a regular expression.
        host: where it ran.
        package: what to install again when there is none.

    Raises TargetError when there is no version.
    """
    text = decode(printed)
    version = re.search(rf"{before}(\d+(?:\.\d+)*)", text)
    if version is None:
        command = " ".join(printed.argv)
        unclear = f"{host.name}: `{command}` printed no version: {text[:200]!r}. Reinstall {package}."
        raise TargetError(unclear)
    return tuple(int(part) for part in version[1].split("."))


def quote_check(refusals: Sequence[str], checked: Completed) -> str:
    """Return what refused a configuration: the check's sentences, or else the last lines of its errors."""
    printed = (checked.stderr.strip() or checked.stdout).decode(errors="replace")
    said = refusals or [line.strip() for line in printed.splitlines() if line.strip()]
    return " / ".join(said[-QUOTED_REFUSALS:]) or "the program printed nothing"


def drop_lines(sentence: str) -> str:
    """Return a sentence of a check without the numbers of lines, which move when a line is added above."""
    return _LINE.sub(lambda found: f"{found['path'] or ''}", sentence)


def find_complaints(log: bytes, *, about: re.Pattern[str], prefix: re.Pattern[str]) -> tuple[str, ...]:
    """Pick the lines that match, each message once, without its time stamp and process ids.

    A server under pressure repeats one line thousands of times; the first twenty different ones are enough.
    """
    lines = (line for line in log.decode(errors="replace").splitlines() if about.search(line))
    return _first_of_each(prefix.sub("", line).strip() for line in lines)


def _first_of_each(messages: Iterable[str]) -> tuple[str, ...]:
    # Numbers (connections, file descriptors, pids) do not make a message different.
    seen: dict[str, str] = {}
    for message in messages:
        seen.setdefault(re.sub(r"\d+", "0", message), message)
        if len(seen) == MAX_COMPLAINTS:
            break
    return tuple(seen.values())
