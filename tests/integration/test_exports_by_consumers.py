"""Random winners that TuneD's daemon and cloud-init put on test hosts and take back; buildah, kubectl."""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from benchmarks.faults.look import differing, look_at
from tests.integration.exported import consumer, run, write_format
from tests.integration.random_winners import (
    PORTS,
    SPACES,
    WINNERS,
    draw_winner,
    prepare_study,
    read_winner,
    values_in_force,
)
from tests.testbed.bed import Testbed
from tests.testbed.host import TestHost
from tuner.campaign.prepare import prepare
from tuner.commands.outputs import write_export
from tuner.study import load_study

pytestmark = pytest.mark.more

PLACE = "/opt/consumer"
MODULES = "usr/lib/python3/dist-packages"
TUNED_SOCKET = "/run/tuned/tuned.sock"
TUNED_MAIN = f"""\
dynamic_tuning = 0
reapply_sysctl = 0
enable_unix_socket = 1
unix_socket_path = {TUNED_SOCKET}
unix_socket_ownership = -1 -1
unix_socket_permissions = 0o600
"""
# The daemon answers whoever has said all (unix_socket_exporter.py); tuned-adm itself asks over D-Bus alone.
ASK_TUNED = """
import json, socket, sys, time
asked = json.dumps({"jsonrpc": "2.0", "method": sys.argv[1], "params": sys.argv[2:], "id": 1})
while True:
    with socket.socket(socket.AF_UNIX) as daemon:
        try:
            daemon.connect("%s")
        except OSError:
            time.sleep(0.05)
            continue
        daemon.sendall(asked.encode())
        daemon.shutdown(socket.SHUT_WR)
        print(daemon.recv(100000).decode())
        break
"""
CLOUD_CONFIG = """\
datasource_list: [NoCloud]
datasource: {NoCloud: {fs_label: null}}
network: {config: disabled}
preserve_hostname: true
cloud_init_modules: []
cloud_config_modules: [runcmd]
cloud_final_modules: [write_files_deferred, scripts_user]
system_info: {distro: debian, default_user: {name: root}}
"""
STEPS = (("init", "--local"), ("init",), ("modules", "--mode=config"), ("modules", "--mode=final"))
"""What cloud-init's units run at a boot."""


@dataclass(frozen=True, kw_only=True)
class Consumer:
    """Puts what was exported into a folder on a host, and takes it back."""

    apply: Callable[[], None]
    undo: Callable[[], None]


def run_unpacked(host: TestHost, program: str, *argv: str) -> str:
    """Run a program of a package that is unpacked on a host, by the distribution's own Python."""
    whole = ("env", f"PYTHONPATH={PLACE}/{MODULES}", "/usr/bin/python3", f"{PLACE}/{program}", *argv)
    return host.run(whole).stdout.decode()


def ask_tuned(host: TestHost, method: str, *argv: str) -> object:
    said = host.run(["/usr/bin/python3", "-c", ASK_TUNED % TUNED_SOCKET, method, *argv]).stdout
    return json.loads(said)["result"]


def wait_for_profile(host: TestHost) -> None:
    """Wait until the profile of the daemon is active, as it says itself; asking changes nothing."""
    for _ in range(50):
        if ask_tuned(host, "verify_profile"):
            return
    raise AssertionError((host.root / "root/tuned.log").read_text())


@contextmanager
def tuned(host: TestHost, folder: Path) -> Iterator[Consumer]:
    """Give a host TuneD, whose daemon runs as long as the profile is chosen."""
    consumer(f"tuned/{MODULES}/procfs")
    shutil.copytree(consumer("tuned"), host.root / PLACE[1:])
    for place in ("etc/tuned", "usr/lib/tuned"):
        shutil.copytree(consumer("tuned") / place, host.root / place)
    with (host.root / "etc/tuned/tuned-main.conf").open("a") as main:
        main.write(TUNED_MAIN)
    for place in ("run/tuned", "etc/tuned/other"):
        (host.root / place).mkdir()
    (host.root / "etc/tuned/other/tuned.conf").write_text("[main]\nsummary=Nothing\n")

    def apply() -> None:
        profile = host.root / "etc/tuned/tuner"
        shutil.copytree(folder / "tuner", profile)
        if (profile / "script.sh").exists():
            (profile / "script.sh").chmod(0o755)
        run_unpacked(
            host, "usr/sbin/tuned", "--daemon", "--no-dbus", "--log", "/root/tuned.log", "--profile", "tuner"
        )
        wait_for_profile(host)
        restart(host)

    def undo() -> None:
        assert ask_tuned(host, "switch_profile", "other") == [True, "OK"]
        shutil.rmtree(host.root / "etc/tuned/tuner")
        for own in ("active_profile", "profile_mode"):
            (host.root / "etc/tuned" / own).write_text("")

    yield Consumer(apply=apply, undo=undo)


@contextmanager
def cloud_init(host: TestHost, folder: Path) -> Iterator[Consumer]:
    """Give a host cloud-init, with a seed of its own in the place of a cloud."""
    consumer(f"cloud-init/{MODULES}/configobj")
    shutil.copytree(consumer("cloud-init"), host.root / PLACE[1:])
    (host.root / "etc/cloud/cloud.cfg.d").mkdir(parents=True)
    (host.root / "etc/cloud/cloud.cfg").write_text(CLOUD_CONFIG)
    state = host.root / "var/lib/cloud"

    def boot_with(name: str) -> None:
        seed = state / "seed/nocloud"
        seed.mkdir(parents=True, exist_ok=True)
        (seed / "meta-data").write_text("instance-id: web\n")
        (seed / "user-data").write_bytes((folder / name).read_bytes())
        for step in STEPS:
            run_unpacked(host, "usr/bin/cloud-init", *step)

    def undo() -> None:
        run_unpacked(host, "usr/bin/cloud-init", "clean", "--logs")
        boot_with("tuner-cloud-config-undo.yaml")
        shutil.rmtree(state)

    yield Consumer(apply=lambda: boot_with("tuner-cloud-config.yaml"), undo=undo)


def restart(host: TestHost) -> None:
    """Do what the head of the profile says: a listener keeps the limits of when it was opened."""
    head = (host.root / "etc/tuned/tuner/tuned.conf").read_text()
    for line in head.splitlines():
        if line.startswith("# then restart "):
            for name in line.removeprefix("# then restart ").split(":")[0].split():
                host.run(["service", name, "restart"])


CONSUMERS = {"tuned": tuned, "cloud-init": cloud_init}


def choose_servers() -> Sequence[str]:
    """Return all servers where many winners are asked for, otherwise the one that starts fastest."""
    return tuple(SPACES) if WINNERS > 1 else ("nginx",)


@pytest.mark.parametrize("form", CONSUMERS)
@pytest.mark.parametrize("server", choose_servers())
@pytest.mark.parametrize("number", range(WINNERS))
def test_a_random_winner_is_put_into_force_and_taken_back_by_who_reads_it(
    own_bed: Testbed, tmp_path: Path, server: str, form: str, number: int
) -> None:
    # Without systemd a restarted server may keep the pipe to which TuneD listens until the script has ended.
    host = own_bed.add_host("web", systemd=True)
    host.install(server)
    setup, port = prepare_study(host, server, tmp_path), PORTS.get(server, 80)
    winner, folder = draw_winner(setup, seed=f"{server} {number}"), tmp_path / "out"
    write_export(read_winner(setup, winner), form, folder)

    with CONSUMERS[form](host, folder) as hand:
        before = look_at(host)
        hand.apply()
        host.wait_until_it_answers(port)
        changed = {name: new for name, (_, new) in setup.space.changes(winner).items()}
        assert values_in_force(setup, changed) == changed

        hand.undo()
        host.wait_until_it_answers(port)
        assert differing(before, look_at(host)) == {}, changed


PRIVATE_STUDY = """\
study: private
servers: [nginx]
space: [nginx]
target: {host: local, mode: sandbox}
load: {path: /index.html}
"""


def make_base(folder: Path) -> None:
    """Fill a folder with as much of this machine as its nginx needs to check its files."""
    nginx = Path("/usr/sbin/nginx")
    for library in re.findall(r"(?m)(/\S+) \(0x", run("ldd", str(nginx))):
        copy_below(folder, Path(library))
    for path in (nginx, Path("/bin/sh"), Path("/etc/passwd"), Path("/etc/group")):
        copy_below(folder, path)
    modules = shutil.ignore_patterns("modules-enabled")
    shutil.copytree("/etc/nginx", folder / "etc/nginx", ignore=modules)
    for place in ("var/log/nginx", "var/lib/nginx", "run", "tmp"):
        (folder / place).mkdir(parents=True)


def is_checked(built: str) -> bool:
    """Return whether an image was built up to the check: buildah may lose what a quick command says last."""
    return re.search(r"^STEP \d/\d: RUN .*nginx.*-t", built, re.MULTILINE) is not None


def copy_below(folder: Path, path: Path) -> None:
    place = folder / str(path)[1:]
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, place)


def test_an_image_is_built_of_the_lines_and_nginx_accepts_its_files_there(
    own_bed: Testbed, tmp_path: Path
) -> None:
    consumer("buildah/usr/bin/buildah")
    host = own_bed.add_host("builder")
    shutil.copytree(consumer("buildah") / "usr", host.root / "usr", dirs_exist_ok=True)
    study, place = tmp_path / "study.yaml", host.root / "srv/build"
    study.write_text(PRIVATE_STUDY)
    setup = prepare(load_study(study))
    winner = setup.space.complete({"worker_processes": 3, "worker_connections": 4000})
    write_export(read_winner(setup, winner), "dockerfile", place)
    make_base(place / "base")
    lines = (place / "tuner-dockerfile/Dockerfile").read_text()
    (place / "Dockerfile").write_text(f"FROM scratch\nCOPY base /\n{lines}")
    (place / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')

    def buildah(command: str, *, fails: bool = False) -> str:
        state = "--root=/srv/images --runroot=/run/containers --storage-driver=vfs"
        done = host.run(["sh", "-c", f"cd /srv/build && exec buildah {state} {command} 2>&1"], check=False)
        assert (done.returncode != 0) == fails, done.stdout.decode()
        return done.stdout.decode()

    build = "build --isolation=chroot --signature-policy=policy.json"
    built = buildah(f"{build} --tag=tuned .")
    assert is_checked(built), built
    name = buildah("from --signature-policy=policy.json --pull-never tuned").split()[-1]
    image = host.root / buildah(f"mount {name}").split()[-1][1:]
    files = place / "tuner-dockerfile/files"
    inside = {path.relative_to(files): path.read_bytes() for path in files.rglob("*") if path.is_file()}
    assert {path: (image / path).read_bytes() for path in inside} == inside
    assert b"worker_connections 4000;" in inside[Path("etc/nginx/nginx.conf")]

    refused = files / "etc/nginx/nginx.conf"
    refused.write_text(f"{refused.read_text()}\nnonsense;\n")
    assert is_checked(buildah(f"{build} --tag=refused .", fails=True))


def patch(workload: Path, changes: Path) -> str:
    """Return a workload as kubectl patches it, without a cluster."""
    kubectl = str(consumer("kubernetes-client/usr/bin/kubectl"))
    files = ("-f", str(workload), "--patch-file", str(changes))
    return run(kubectl, "patch", "--local", "-o", "yaml", *files, HOME=str(workload.parent))


def test_kubectl_gives_a_workload_the_winner_and_takes_it_back(tmp_path: Path) -> None:
    write_format("kubernetes", tmp_path)
    workload, patched, nothing = (tmp_path / name for name in ("own.yaml", "patched.yaml", "nothing.yaml"))
    mount = {"name": "pages", "mountPath": "/srv"}
    container = {"name": "nginx", "image": "nginx", "volumeMounts": [mount]}
    pod = {
        "containers": [container, {"name": "beside", "image": "beside"}],
        "securityContext": {"runAsUser": 33},
        "volumes": [{"name": "pages", "emptyDir": {}}],
    }  # fmt: skip
    labels = {"app": "web"}
    workload.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
                "spec": {
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": pod},
                },
            }
        )
    )  # fmt: skip
    nothing.write_text("{}")
    before = yaml.safe_load(patch(workload, nothing))

    patched.write_text(patch(workload, tmp_path / "tuner-kubernetes/patch.yaml"))
    changed = yaml.safe_load(patched.read_text())["spec"]["template"]["spec"]
    assert [each["name"] for each in changed["containers"]] == ["nginx", "beside"]
    assert mount in changed["containers"][0]["volumeMounts"]
    assert len(changed["containers"][0]["volumeMounts"]) == 3
    assert {each["name"] for each in changed["volumes"]} == {"pages", "tuner"}
    assert changed["securityContext"]["runAsUser"] == 33
    assert len(changed["securityContext"]["sysctls"]) == 2

    after = patch(patched, tmp_path / "tuner-kubernetes/undo.yaml")
    assert yaml.safe_load(after) == before
