"""Wrong input: one clear sentence or two, the right exit code, nothing left behind."""

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.e2e.command_line import CommandLine
from tests.e2e.traces import eventually, picture, unchanged
from tests.finished_study import finish
from tests.more import leave_to_more
from tests.testbed.processors import idle_processors_here
from tuner.study import load_study

USAGE, TARGET = 2, 3


def refused(completed, code, *words):
    """Check that a command was refused in a sentence or two that hold these words."""
    assert completed.returncode == code, (completed.returncode, completed.stdout, completed.stderr)
    said = completed.stderr.strip()
    assert "Traceback" not in said
    said = said.splitlines()[-1]  # after the progress, when it came so far
    assert said.startswith("tuner: ")
    for word in words:
        assert word in said
    return True


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A study that has its winner; not to be changed."""
    tuner = CommandLine(tmp_path_factory.mktemp("made"))
    finish(load_study(tuner.write()), {"worker_connections": 2000})
    return tuner.folder


def stop_after_first_trial(tuner, study):
    process = tuner.start("run", study, "--preset", "quick")
    log = process.stderr
    while "baseline" not in (line := log.readline()):
        assert line, "it ended before its first trial"
    process.terminate()
    process.communicate(timeout=30)


@pytest.fixture
def begun(tuner, made):
    """The study file beside a copy of what the study has stored."""
    shutil.copytree(made, tuner.folder, dirs_exist_ok=True)
    return tuner.folder / "study.yaml"


@pytest.mark.parametrize(
    ("line", "replacement", "words"),
    [
        ("study: test", "studie: test", ("studie", "study", ":1")),
        ("servers: [nginx]", "servers: [ngnix]", ("ngnix", "nginx")),
        ("space: [nginx]", "space: [ngnix]", ("ngnix", "nginx")),
        ("space: [nginx]", "space: [nginx, {only: [sendfiles]}]", ("sendfiles", "sendfile")),
        ("space: [nginx]", "space: [nginx, {set: {worker_processes: many}}]", ("worker_processes", "many")),
        ("space: [nginx]", "space: [nginx, sysctl-net]", ("sysctl", "servers")),
        ("generator: wrk", "generator: wkr", ("wkr", "wrk")),
        ("connections: 20", "connections: 0", ("connections", "0", ":5")),
        ("connections: 20", "connections: twenty", ("twenty", ":5")),
        ("connections: 20", "connections: 1000000", ("connections", "1000000")),
        ("path: /index.html", "path: index.html", ("index.html", "/")),
        ("path: /index.html", "path: /missing.html", ("missing.html",)),
        ("content: builtin", "content: /nowhere/at/all", ("/nowhere/at/all",)),
        ("mode: sandbox", "mode: sandbags", ("sandbags", "sandbox")),
        ("mode: sandbox", "mode: managed, watchdog_s: 1", ("watchdog_s", "5")),
        ("preset: quick", "preset: quik", ("quik", "quick")),
        ("preset: quick", "preset: quick, minutes: 0", ("minutes", "0")),
        ("preset: quick", "preset: quick, trials: 0", ("trials", "0")),
        ("preset: quick", "preset: quick, minutes: nan", ("minutes", "nan")),
        ("content: builtin", "content: builtin\nobjective: maximize happiness", ("happiness", "goodput_rps")),
        ("content: builtin", "content: builtin\nconstraints: [failures <= 1]", ("failures", "failure_rate")),
        (
            "content: builtin",
            "content: builtin\nstorage: here",
            ("storage", "in its folder", "targets:"),
        ),
        ("content: builtin", "content: builtin\nseed: -1", ("seed", "-1")),
        (
            "content: builtin",
            "content: builtin\nwarm_start: [gone.yaml]",
            ("gone.yaml", "the file does not exist"),
        ),
        ("content: builtin", "content: builtin\noptimizer: tpee", ("tpee", "tpe")),
        ("content: builtin", "content: [unclosed", ("YAML",)),
        ("content: builtin", "content: *alias", ("alias",)),
    ],
)
def test_a_wrong_study_file_is_refused_with_place_value_and_remedy(tuner, line, replacement, words):
    text = tuner.write().read_text()
    assert line in text
    study = tuner.write(text=text.replace(line, replacement))

    completed = tuner.call("check", study)

    assert refused(completed, USAGE, *words)
    assert not tuner.processes()


def test_a_missing_study_file_is_refused(tuner):
    assert refused(tuner.run("run", "nothing.yaml"), USAGE, "nothing.yaml", "tuner init")


def test_a_study_file_that_is_a_folder_is_refused(tuner):
    assert refused(tuner.call("run", tuner.folder), USAGE, "cannot be read")


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        ("{kind: int, low: 9, high: 3, default: 5, why: x, source: y}", ("low", "9", "3")),
        ("{kind: int, low: 1, high: a, default: 5, why: x, source: y}", ("a",)),
        ("{kind: int, low: 1 / 0, high: 3, default: 2, why: x, source: y}", ("zero",)),
        ("{kind: int, low: 1, high: 3, defualt: 2, why: x, source: y}", ("defualt", "default")),
    ],
)
def test_a_wrong_space_file_is_refused_with_its_line(tuner, parameter, words):
    (tuner.folder / "own.yaml").write_text(
        f"space: own\nserver: nginx\ntitle: mine\nparameters:\n  a: {parameter}\n"
    )
    study = tuner.write(space="./own.yaml")

    assert refused(tuner.call("check", study), USAGE, "own.yaml:5", *words)


def test_a_circular_expression_is_refused_with_its_circle(tuner):
    (tuner.folder / "own.yaml").write_text(
        "space: own\nserver: nginx\ntitle: mine\nparameters:\n"
        "  a: {kind: int, low: 1, high: b, default: 1, why: x, source: y}\n"
        "  b: {kind: int, low: 1, high: a, default: 1, why: x, source: y}\n"
    )

    assert refused(tuner.call("check", tuner.write(space="./own.yaml")), USAGE, "own.yaml", "a", "b")


def test_a_missing_generator_is_named_with_its_package(tuner):
    bin_folder = tuner.folder / "bin"
    bin_folder.mkdir()
    for folder in ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"):
        for path in Path(folder).glob("*"):  # not every system has all of them
            link = bin_folder / path.name
            if path.name != "wrk" and not link.is_symlink():
                link.symlink_to(path)

    completed = tuner.call("check", tuner.write(), environment={"PATH": str(bin_folder)})

    assert refused(completed, TARGET, "wrk", "apt-get install wrk")


@pytest.mark.parametrize(
    ("server", "space", "package"),
    leave_to_more([("apache", "apache-event", "apache2"), ("nginx", "nginx", "nginx")]),
)
def test_a_missing_server_is_named_with_its_package(tuner, server, space, package):
    # Servers are found in /usr/sbin whatever PATH says, so it is emptied, for this command alone.
    hide = 'mount -t tmpfs tmpfs /usr/sbin && exec "$@"'
    study = tuner.write(server=server, space=space)

    completed = tuner.run("check", study, through=("unshare", "--mount", "sh", "-c", hide, "sh"))

    assert refused(completed, TARGET, server, f"apt-get install {package}")


def test_an_unreadable_document_root_is_refused(tuner):
    root = tuner.folder / "pages"
    root.mkdir()
    (root / "index.html").write_text("x" * 500)
    (root / "index.html").chmod(0o600)
    study = tuner.write(content=root)

    completed = tuner.call("check", study)

    # For root the file can be read, and the server's own user finds out that it cannot.
    assert refused(completed, TARGET if os.geteuid() == 0 else USAGE, "index.html")
    assert not tuner.processes()


@pytest.mark.more
def test_a_study_whose_page_could_not_be_read_runs_when_that_was_put_right(tuner):
    for name, mode in (("private", 0o600), ("public", 0o644)):
        (tuner.folder / name).mkdir()
        (tuner.folder / name / "index.html").write_text("x" * 500)
        (tuner.folder / name / "index.html").chmod(mode)

    wrong = tuner.call("run", tuner.write(content="private"), "--preset", "quick")
    assert refused(wrong, TARGET if os.geteuid() == 0 else USAGE, "index.html")

    stop_after_first_trial(tuner, tuner.write(content="public"))


def test_a_page_that_is_not_there_is_refused(tuner):
    root = tuner.folder / "pages"
    root.mkdir()
    (root / "index.html").write_text("x" * 500)

    completed = tuner.call("check", tuner.write(content=root, path="/nowhere"))

    assert refused(completed, TARGET, "404")
    assert not tuner.processes()


@pytest.mark.more
def test_a_second_run_on_the_same_study_is_refused(tuner):
    study = tuner.write()
    first = tuner.start("run", study, "--preset", "quick")
    try:
        lock = tuner.folder / "study.study/lock"
        assert eventually(lambda: lock.exists() and lock.read_text().strip() == str(first.pid), within_s=20)

        second = tuner.call("run", study)

        assert refused(second, TARGET, "another tuner", str(first.pid))
        assert first.poll() is None
    finally:
        first.terminate()
        first.communicate(timeout=30)


@pytest.mark.usefixtures("begun")
def test_a_storage_of_another_study_is_refused(tuner):
    other = tuner.write(name="other")

    assert refused(tuner.call("run", other), USAGE, "'test'", "'other'")


def test_a_storage_of_another_machine_is_refused(tuner, begun):
    from tuner.study.facts import FINGERPRINT
    from tuner.study.open_storage import open_storage

    settings = load_study(begun)
    storage = open_storage(settings.storage_url, settings.name)
    storage.remember(FINGERPRINT, replace(storage.recall(FINGERPRINT), host="elsewhere"))

    assert refused(tuner.call("run", begun), USAGE, "another machine", "elsewhere")


def test_a_changed_definition_is_refused(tuner, begun):
    tuner.write(connections=21)

    assert refused(tuner.call("run", begun), USAGE, "changed")


def test_a_storage_that_is_no_database_is_refused(tuner):
    study = tuner.write()
    folder = tuner.folder / "study.study"
    folder.mkdir()
    (folder / "study.db").write_bytes(b"this is no database, but long enough to be read as one" * 50)

    assert refused(tuner.call("run", study), USAGE, "study.db", "not a database")


@pytest.mark.alone
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_full_disk_ends_the_run_with_its_name_and_nothing_left_behind(tuner):
    study = tuner.write()
    folder = tuner.folder / "study.study"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k,mode=755", "tmpfs", folder], check=True)
    try:
        # Noise would end it, too, and sooner.
        with idle_processors_here() as through:
            before = picture()

            completed = tuner.run("run", study, "--preset", "quick", through=through)

            assert refused(completed, TARGET, "study.db", "space")
            assert not tuner.processes()
            assert unchanged(before)
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="forbidding namespaces needs root")
def test_no_permission_for_namespaces_is_said(tuner):
    study = tuner.write()
    forbid = 'echo 0 > /proc/sys/user/max_net_namespaces; exec "$@"'

    completed = tuner.run(
        "check", study, through=("unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh")
    )

    assert refused(completed, TARGET, "namespace")


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv takes the right away")
def test_a_generator_that_cannot_open_its_connections_is_said(tuner):
    study = tuner.write(connections=2000)
    through = ("prlimit", "--nofile=1100:1100", "setpriv", "--bounding-set=-sys_resource")

    completed = tuner.run("check", study, through=through)

    assert refused(completed, USAGE, "open 1,100 files", "lower `connections:`")
    assert not tuner.processes()


@pytest.mark.parametrize(
    "arguments",
    [
        ("init", "ngnix"),
        ("spaces", "ngnix"),
        ("show", "study.yaml"),
        ("export", "study.yaml", "--format", "nginx"),
        ("run", "study.yaml", "--minutes", "0"),
        ("run", "study.yaml", "--trials", "0"),
        ("run", "study.yaml", "--preset", "quickest"),
        ("compare", "study.yaml", "default", "nowhere.yaml"),
        ("compare", "study.yaml", "default", "winner"),
        ("compare", "study.yaml", "default", "cachd"),
        ("restore", "--host", "nowhere"),
    ],
)
def test_a_wrong_argument_is_refused(tuner, arguments):
    tuner.write()

    completed = tuner.call(*arguments)

    assert completed.returncode == USAGE, completed.stderr
    assert completed.stderr.strip()
    assert "Traceback" not in completed.stderr
    assert [path.name for path in tuner.folder.iterdir()] == ["study.yaml"], "something was left"


def test_init_never_overwrites_a_file(tuner):
    (tuner.folder / "nginx.yaml").write_text("mine\n")

    assert refused(tuner.call("init", "nginx"), USAGE, "nginx.yaml", "already")
    assert (tuner.folder / "nginx.yaml").read_text() == "mine\n"


def test_a_check_does_not_run_the_command_of_a_study_that_is_not_trusted(tuner):
    mark = tuner.folder / "it-ran"
    study = tuner.write()
    command = f"generator: command, command: [touch, {mark}], result: {{correct: /ok}}"
    study.write_text(study.read_text().replace("generator: wrk", command))

    assert refused(tuner.call("check", study), USAGE, "load.command", "touch", "--trust")
    assert not mark.exists()


def test_a_check_does_not_let_a_study_write_directives_that_start_programs(tuner):
    mark = tuner.folder / "it-ran"
    (tuner.folder / "own.yaml").write_text(
        "space: own\nserver: apache\ntitle: mine\nparameters:\n"
        f"  ErrorLog: {{kind: categorical, choices: ['\"|/usr/bin/touch {mark}\"', b], why: x, source: y,\n"
        f"    default: '\"|/usr/bin/touch {mark}\"'}}\n"
    )
    study = tuner.write(space="./own.yaml", server="apache")

    assert refused(tuner.call("check", study), USAGE, "ErrorLog", "--trust")
    assert not mark.exists()
