"""A host with a server, whoever tunes it, and whoever else works on it."""

import http.client
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import tuner
from benchmarks.faults.forked import TUNER, Forked
from benchmarks.faults.look import TICK_S, start_of
from benchmarks.faults.sequences import inside, look
from benchmarks.faults.sequences.look import State
from benchmarks.faults.sequences.servers import NGINX, Tuned
from tests.finished_study import finish
from tests.testbed.bed import Testbed, open_testbed
from tests.testbed.host import TestHost

STUDY = """\
study: sequence
servers: [{servers}]
space: [{spaces}, {{only: [{only}]}}]
target: {{host: "{url}", mode: managed, watchdog_s: 120}}
load: {{path: "{page}"}}
"""
BESIDE = "beside"
BESIDE_UNIT = """\
[Unit]
Requires={unit}.service
After={unit}.service
[Service]
ExecStart=sleep infinity
[Install]
WantedBy=multi-user.target
"""
"""Of a service that stops with the server."""
END_WATCHDOG = """
read -r _ pid < /var/lib/tuner/{}/watchdog && grep -q keeper /proc/$pid/cmdline && kill -9 $pid
"""
TRIAL = "benchmarks.faults.sequences.trial"
TIMEOUT_S = 100.0
QUIET_S = 30.0
DISK = "24m"
BOOT = """
[ ! -e {lasting} ] || sysctl -q -e -p {lasting}
{before}; {start}
[ ! -e {cron} ] || sed -n 's/^@reboot root //p' {cron} | sh
"""
"""What a boot without systemd does; cron comes last."""
CRON, LASTING = "/etc/cron.d/tuner-restore", "/etc/sysctl.d/99-tuner.conf"
STRANGER = 4321
"""A user who is neither root nor anybody who called sudo."""
FAST, SLOW = "0.02 4 0.1", "3 2000 600"
"""How the watchdog counts when its time shall come, and when it shall not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended."""

    argv: tuple[str, ...]
    code: int
    said: str
    was_hit: bool


@dataclass(slots=True, kw_only=True)
class World:
    """All there is to a sequence."""

    bed: Testbed
    host: TestHost
    tuned: Tuned
    is_local: bool
    """Whether tuner runs on the host itself."""
    folder: Path
    """Of the studies and of what controllers remember."""
    output: Path
    truth: dict[str, State]
    """What somebody else than tuner wrote last, by path."""
    serves: bool = True
    """Whether the server has to answer, for nobody else stopped it."""
    is_broken: bool = False
    """Whether somebody left a configuration that the server refuses."""
    is_full: bool = False
    steps: list[str] = field(default_factory=list)
    is_value_free: bool = False
    """Whether a restart has taken the setting of the kernel that somebody had set."""
    number: int = 0
    handed_on_s: float = 0.0
    """When somebody last changed the mode of a file, which its server need not read for that."""

    @property
    def controllers(self) -> dict[str, Path]:
        """Their state directories, as this machine reaches them."""
        return {name: self.there(self.state_of(name)) for name in ("one", "two")}

    def state_of(self, controller: str) -> Path:
        """Return the state directory of a controller, as it calls that."""
        return self.folder / f"state-{controller}"

    def there(self, path: Path) -> Path:
        """Return where this machine finds what a controller calls so."""
        return self.host.root / path.relative_to("/") if self.is_local else path

    @property
    def is_touched(self) -> bool:
        """Whether tuner was ever there."""
        return (self.host.root / look.KEPT_IN).exists()

    @property
    def is_taken(self) -> bool:
        """Whether tuner is at work there, or has to put something back."""
        return any((self.host.root / look.KEPT_IN / name / "owner").exists() for name in ("run", "apply"))

    @property
    def page(self) -> str:
        """Return the URL that has to answer."""
        return f"http://{self.host.address}{self.tuned.page}"

    @property
    def aliases(self) -> tuple[str, ...]:
        """What a controller may call the host."""
        return ("local",) if self.is_local else (self.host.ssh_url, self.host.ssh_url.removesuffix(":22"))

    def tuner(
        self, *argv: str, controller: str = "one", hit: Mapping[str, str] | None = None, program: str = TUNER
    ) -> Ended:
        """Run a command of tuner, hit or not, and wait until the host is quiet again."""
        environment = {**self.environment(controller), **(hit or {})}
        process = Forked([program, *argv], environment, self.output)
        code = process.wait(TIMEOUT_S)
        # After a signal that ended it, a step on the host comes to its end alone.
        if hit:
            self.await_quiet()
        self.slow_watchdogs()
        return Ended(argv=argv, code=code, said=process.read_output(), was_hit=bool(hit))

    def environment(self, controller: str = "one") -> dict[str, str]:
        """Return what a controller's programs find in their environment."""
        return {
            "OMP_NUM_THREADS": "1",
            "COLUMNS": "200",
            **os.environ,
            "HOME": str(self.bed.home),
            "TUNER_STATE": str(self.state_of(controller)),
            **({inside.VARIABLE: str(self.host.pid)} if self.is_local else {}),
        }

    def trial(self, controller: str, hit: Mapping[str, str] | None) -> Ended:
        """Make a trial of a managed run."""
        study, changes = str(self.folder / "trial.yaml"), json.dumps(self.tuned.trial)
        return self.tuner(study, changes, controller=controller, hit=hit, program=TRIAL)

    def await_quiet(self) -> None:
        """Wait until no step of the keeper is at work."""
        deadline = time.monotonic() + QUIET_S
        while found := [step for step in look.steps_of(self.host) if step not in look.WATCHDOG]:
            if time.monotonic() > deadline:
                raise AssertionError(f"these steps are still at work after {QUIET_S} s: {found}")
            time.sleep(0.02)

    def slow_watchdogs(self) -> None:
        """Let no time pass for the watchdogs."""
        for purpose in ("run", "apply"):
            self._tick(purpose, SLOW)

    def _tick(self, purpose: str, how: str) -> None:
        ticking = self.host.root / "var/lib/tuner" / purpose / "ticking"
        if ticking.exists() and ticking.read_text().strip() != how:
            ticking.write_text(f"{how}\n")
            self.host.run(
                ["sh", "-c", END_WATCHDOG.format(purpose)],
                check=False,
            )

    def let_time_pass(self) -> None:
        """Let the time of all watchdogs come; each has tried to put everything back when this returns."""
        for purpose in ("run", "apply"):
            state = self.host.root / "var/lib/tuner" / purpose
            if not (state / "owner").exists():
                continue
            log = self.host.root / "var/lib/tuner/log"
            tried = log.read_text().count("troubles are left") if log.exists() else 0
            self._tick(purpose, FAST)
            deadline = time.monotonic() + QUIET_S
            while (state / "owner").exists():
                now = log.read_text().count("troubles are left") if log.exists() else 0
                if now > tried or self.is_full or not look.steps_of(self.host):
                    break
                if time.monotonic() > deadline:
                    raise AssertionError("the watchdog does not put back what its time has come for")
                time.sleep(0.02)
            self._tick(purpose, SLOW)
        self.await_quiet()

    def answer(self) -> tuple[int | None, bytes]:
        """Return status and body of the page; no status where nothing answers."""
        connection = http.client.HTTPConnection(self.host.address, 80, timeout=5)
        try:
            connection.request("GET", self.tuned.page)
            response = connection.getresponse()
            return response.status, response.read()
        except OSError:
            return None, b""
        finally:
            connection.close()

    def is_in_force(self, path: str) -> bool:
        """Check whether the server has read a file since it was last written; True where it does not run."""
        started_s = [start_of(pid) for pid in self.host.processes(self.tuned.program)]
        file = self.host.root / path[1:]
        written_s = (file if file.exists() else file.parent).stat().st_ctime
        return (
            not started_s
            or not self.tuned.spaces
            or written_s == self.handed_on_s
            or written_s < max(started_s) + TICK_S
        )

    def scan(self) -> dict[str, State]:
        """Read all files that a sequence may change."""
        return look.scan(self.host, self.tuned.folder)

    def restart(self) -> None:
        """Cut the host's power, and start it again."""
        self.host = self.bed.restart(self.host)
        self.show_python()
        if not self.host.has_systemd:
            tuned = self.tuned
            self.sh(
                BOOT.format(lasting=LASTING, cron=CRON, before=tuned.before, start=tuned.start), check=False
            )
        self.await_quiet()
        self.slow_watchdogs()

    def hand_study_over(self, owner: int) -> None:
        """Let the study belong to a user."""
        folder = self.there(self.folder) / "study.study"
        for path in (folder, *folder.rglob("*")):
            os.chown(path, owner, owner)

    def show_python(self) -> None:
        """Let a tuner on the host find what this machine's Python is made of, which may be in a home."""
        if self.is_local:
            self.host.run(["umount", "/root"])

    def runs(self) -> bool:
        """Check whether the units run that ran; without systemd there are none."""
        units = [self.tuned.unit, BESIDE] if self.host.has_systemd else []
        return all(self.host.show_unit(unit, "ActiveState") == "active" for unit in units)

    def sh(self, script: str, *, check: bool = True) -> str:
        return self.host.run(["sh", "-c", script], check=check).stdout.decode(errors="replace")

    def wrote(self, *paths: str) -> None:
        """Remember what is at these paths as what somebody else wrote."""
        there = self.scan()
        for path in paths:
            if path in there:
                self.truth[path] = there[path]
            else:
                self.truth.pop(path, None)


@contextmanager
def template(tuned: Tuned = NGINX) -> Iterator[Path]:
    """Yield a folder with a study of a server that has its winner."""
    with tempfile.TemporaryDirectory(prefix="sequences-") as directory, open_testbed() as bed:
        folder = Path(directory)
        host = bed.add_host("web")
        tuned.install(host)
        path = folder / "study.yaml"
        path.write_text(write_study(tuned, host, host.ssh_url))
        earlier = {name: os.environ.get(name) for name in ("HOME", "TUNER_STATE")}
        os.environ.update({"HOME": str(bed.home), "TUNER_STATE": str(folder / "state")})
        try:
            finish(tuner.load_study(path), tuned.winner)
        finally:
            for name, value in earlier.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
        yield folder


def write_study(tuned: Tuned, host: TestHost, url: str) -> str:
    """Return the study file of a server at a host that is called so."""
    return STUDY.format(
        servers=", ".join([*tuned.spaces, "sysctl"]),
        spaces=", ".join([*tuned.spaces.values(), "sysctl-net"]),
        only=", ".join({**tuned.winner, **tuned.trial}), url=url, page=f"http://{host.address}{tuned.page}",
    )  # fmt: skip


@contextmanager
def open_world(
    template: Path, tuned: Tuned, *, is_local: bool = False, systemd: bool = False, cron: bool = False
) -> Iterator[World]:
    """Yield a fresh host, with a stand-in of cron or without, and the study that is applied there."""
    with tempfile.TemporaryDirectory(prefix="sequence-") as directory, open_testbed() as bed:
        folder = Path(directory)
        host = bed.add_host("web", disk=DISK, systemd=systemd, lasting=not systemd)
        if cron:
            (host.root / "usr/sbin/cron").touch(mode=0o755)
        if systemd:
            unit = host.root / f"etc/systemd/system/{BESIDE}.service"
            unit.write_text(BESIDE_UNIT.format(unit=tuned.unit))
        tuned.install(host)
        if systemd:
            host.run(["systemctl", "enable", "--quiet", "--now", BESIDE])
        world = World(
            bed=bed, host=host, tuned=tuned, is_local=is_local,
            folder=Path("/srv/tuner") if is_local else folder,
            output=folder / "output", truth=look.scan(host, tuned.folder),
        )  # fmt: skip
        world.show_python()
        there = world.there(world.folder)
        shutil.copytree(template / "study.study", there / "study.study")
        shutil.copy(template / "study.yaml", there)
        (there / "trial.yaml").write_text(write_study(tuned, host, world.aliases[0]))
        yield world
