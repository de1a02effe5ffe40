"""Find, change, check, read back and undo settings in a folder of configurations that others wrote.

    make bench-real-configs FOLDER=DIRECTORY
    python -m benchmarks.real_configs DIRECTORY --server nginx --only NAME

The folder holds SERVER/NAME/… with SERVER one of nginx, apache, php-fpm and h2o. What is in NAME is put over
a copy of this machine's own configuration (/etc/nginx, /etc/apache2 …), in a sandbox. What the server itself
refuses then is counted apart. An installed HAProxy is not tuned.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.installed import backing, installed, sh
from tuner import plugins
from tuner.errors import TunerError
from tuner.ports import Argv, Config, Files, FileState, Installation, InstalledServer, Sandbox, Scalar

WANTED = 3
"""Settings that are changed of each configuration."""
WRITTEN = ("/var/log", "/run", "/var/lib/nginx", "/srv")
"""Where servers write during a check; empty in the sandbox."""
AS_WANTED, REFUSED = "as wanted", "refused by the server itself"
CHECK_TIMEOUT_S = 30.0
DIGEST = "find . -printf '%p %m %u %l\\n' | sort; find . -type f -exec sha256sum {} + | sort"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One server: where its configuration is, its check, and settings that take another number or switch."""

    root: str
    check: Argv
    settings: tuple[str, ...]


def _php_root() -> str:
    return str(max(Path("/etc/php").glob("*/fpm"), default=Path("/etc/php/8.2/fpm")))


def _kinds() -> Mapping[str, Kind]:
    php = _php_root()
    return {
        "nginx": Kind(
            root="/etc/nginx", check=("nginx", "-t"),
            settings=("worker_connections", "sendfile", "keepalive_requests", "keepalive_timeout",
                      "tcp_nodelay", "multi_accept", "open_file_cache", "server_tokens"),
        ),
        "apache": Kind(
            root="/etc/apache2", check=("apache2ctl", "-t"),
            settings=("MaxKeepAliveRequests", "KeepAliveTimeout", "EnableMMAP", "EnableSendfile",
                      "ListenBacklog", "MaxMemFree"),
        ),
        "php-fpm": Kind(
            root=php,
            check=(f"/usr/sbin/php-fpm{php.split('/')[3]}", "-t", "--nodaemonize", "--force-stderr"),
            settings=("pm.max_requests", "request_terminate_timeout", "rlimit_files", "catch_workers_output"),
        ),
        "h2o": Kind(
            root="/etc/h2o", check=("h2o", "-t", "-c", "/etc/h2o/h2o.conf"),
            settings=("num-threads", "max-connections", "http1-request-timeout", "file.etag", "tcp-fastopen"),
        ),
    }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one configuration."""

    server: str
    name: str
    how: str
    changed: int = 0
    said: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Try every configuration, and print a table; end with 1 where less than 99 % are as wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--server", choices=[*_kinds()])
    parser.add_argument("--only", help="part of a name")
    given = parser.parse_args(arguments)
    outcomes = []
    for server, tree in _find_trees(given.folder):
        if given.server in {None, server} and (given.only or "") in tree.name:
            outcomes.append(_try(server, tree))
            print(f"{server:8} {tree.name:60} {outcomes[-1].how} {outcomes[-1].said}", flush=True)
    print(write_table(outcomes))
    counted = [each for each in outcomes if each.how != REFUSED]
    return int(sum(each.how == AS_WANTED for each in counted) < 0.99 * len(counted))


def _find_trees(folder: Path) -> Iterator[tuple[str, Path]]:
    for server in _kinds():
        for tree in sorted((folder / server).glob("*/")):
            yield server, tree


def _try(server: str, tree: Path) -> Outcome:
    kind = _kinds()[server]
    adapter = plugins.make_installed_server(server)
    with installed(kind.root, empty=[each for each in WRITTEN if Path(each).is_dir()]) as sandbox:
        _put_over(sandbox, tree, kind.root)
        checked = sandbox.run(kind.check, timeout_s=CHECK_TIMEOUT_S)
        if checked.returncode != 0:
            refusals = adapter.refusals(checked)
            return Outcome(server=server, name=tree.name, how=REFUSED, said=" / ".join(refusals[-1:]))
        step = _Steps(sandbox, adapter, kind)
        try:
            step.go()
        except (TunerError, _FailedError, AssertionError) as error:
            return Outcome(server=server, name=tree.name, how=step.name, said=str(error))
        return Outcome(server=server, name=tree.name, how=AS_WANTED, changed=len(step.asked))


def _put_over(sandbox: Sandbox, tree: Path, root: str) -> None:
    sh(sandbox, "mkdir -p /run/php /var/log/apache2 /var/log/nginx /run/lock")
    sh(sandbox, f"cp -a --remove-destination '{tree}/.' '{root}/' && chown -R root:root '{root}'")


class _FailedError(Exception):
    """A step did not do what it should."""


def _require(is_so: bool, words: str) -> None:  # noqa: FBT001 - reads as an assertion
    if not is_so:
        raise _FailedError(words)


class _Steps:
    """The steps of one configuration; `name` is the one that is being taken."""

    def __init__(self, sandbox: Sandbox, adapter: InstalledServer, kind: Kind) -> None:
        self._sandbox, self._adapter, self._kind = sandbox, adapter, kind
        self.name = "find"
        self.asked: Config = {}

    def go(self) -> None:
        """Take all of them. Raises TunerError, _FailedError or AssertionError where one fails."""
        before, digest = self._adapter.find(self._sandbox), self._digest()
        self.name = "change"
        files = self._choose(before)
        originals = {path: self._sandbox.read(path) for path in files}
        for path, content in files.items():
            mode = originals[path].mode or 0o644
            self._sandbox.write(backing(self._sandbox, path), FileState(content=content, mode=mode))
        self.name = "check"
        checked = self._sandbox.run(self._kind.check, timeout_s=CHECK_TIMEOUT_S)
        _require(checked.returncode == 0, " / ".join(self._adapter.refusals(checked)))
        self.name = "read back"
        found = self._adapter.find(self._sandbox).facts.current
        differing = {
            name: (value, found.get(name)) for name, value in self.asked.items() if found.get(name) != value
        }
        _require(not differing, f"asked, active: {differing}")
        self.name = "undo"
        for path, original in originals.items():
            self._sandbox.write(backing(self._sandbox, path), original)
        _require(self._digest() == digest, "the files are not as before")
        again = self._adapter.find(self._sandbox)
        _require(again.facts.current == before.facts.current, "other values are active than before")

    def _choose(self, before: Installation) -> Files:
        """Return the files with other values of the first settings that can be changed."""
        current = before.facts.current
        for name in self._kind.settings:
            if name in current and len(self.asked) < WANTED:
                with suppress(TunerError):  # a line after the drop-in wins, which is said in words
                    one = {name: _other(current[name])}
                    self._adapter.rewrite({**current, **one} if self._adapter.name == "h2o" else one, before)
                    self.asked = {**self.asked, **one}
        _require(bool(self.asked), "none of the settings can be changed")
        return self._adapter.rewrite(self.asked, before)

    def _digest(self) -> str:
        """Return a checksum over all files, their names, modes and links."""
        return sh(self._sandbox, f"cd {self._kind.root}; {DIGEST}")


def _other(value: Scalar) -> Scalar:
    """Return another value that every one of the settings takes."""
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else {"on": "off", "off": "on"}.get(str(value), value)


def write_table(outcomes: Sequence[Outcome]) -> str:
    """Return the counts by server as a Markdown table."""
    lines = [
        "| server | configurations | refused by the server itself | as wanted | three settings | failed |"
    ]
    lines.append("|---|---:|---:|---:|---:|---|")
    for server in _kinds():
        own = [each for each in outcomes if each.server == server]
        hows = Counter(each.how for each in own)
        failed = ", ".join(
            f"{how}: {count}" for how, count in hows.items() if how not in {AS_WANTED, REFUSED}
        )
        three = sum(each.changed == WANTED for each in own)
        lines.append(
            f"| {server} | {len(own)} | {hows[REFUSED]} | {hows[AS_WANTED]} | {three} | {failed or 'none'} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
