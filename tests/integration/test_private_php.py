"""Private instances of php-fpm behind every server that can pass requests to programs, with real PHP."""

import os
from pathlib import Path

import pytest

from tuner.adapters.hosts.local import LocalHost
from tuner.adapters.loads.wrk import Wrk
from tuner.deploy.asked import ExpectedLoad
from tuner.deploy.chain import link
from tuner.deploy.content import Content, open_content
from tuner.deploy.deployment import Deployment
from tuner.deploy.sandbox import SandboxTarget
from tuner.errors import Crashed, NotReady
from tuner.hosts.placement import place
from tuner.plugins import make_private_server
from tuner.ports import Config, FileState, LoadResult, RequestKind, Scalar, Workload

FRONTS = ("apache", "h2o", "nginx")
STATIC_TCP: Config = {
    "pm": "static", "pm.max_children": 7, "pool.listen.backlog": 300, "listen": "tcp",
    "opcache.memory_consumption": 64, "opcache.validate_timestamps": False, "opcache.jit": "tracing",
}  # fmt: skip


def target(front: str, content: Content) -> SandboxTarget:
    host = LocalHost()
    servers = {name: make_private_server(name) for name in (front, "php-fpm")}
    facts = {name: server.detect(host) for name, server in servers.items()}

    def split(config: Config, name: str) -> Config:
        return config if name == "php-fpm" else {}

    return SandboxTarget(
        host=host, servers=servers, facts=facts, chain=link(facts, {}), split=split, content=content,
        placement=place(os.sched_getaffinity(0)),
        load=ExpectedLoad(page=RequestKind(path=content.path, body_bytes=content.body_bytes)),
    )  # fmt: skip


@pytest.fixture
def page(tmp_path: Path):
    tmp_path.chmod(0o755)

    def write(program: str) -> Content:
        (tmp_path / "own.php").write_text(program)
        return open_content(str(tmp_path), "/own.php")

    return write


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("config", [{}, STATIC_TCP], ids=["packaged", "static over TCP"])
def test_the_built_in_page_is_made_by_php_and_what_was_asked_is_in_force(
    front: str, config: dict[str, Scalar]
):
    content = open_content("builtin", "/page.php")

    with target(front, content).deploy(config) as deployment:
        assert deployment.load.body_bytes == content.body_bytes
        assert deployment.effective == {name: config[name] for name in config if name != "pm"}
        assert set(deployment.server_pids) == {front, "php-fpm"}


@pytest.mark.parametrize("front", FRONTS)
def test_a_page_that_fails_with_status_200_is_no_reference(front: str, page):
    shown = "<?php ini_set('display_errors', '1'); echo 'a shop'; no_such_function();"

    with (
        pytest.raises(NotReady, match=r"answered 200, but the program behind it failed: .*no_such_function"),
        target(front, page(shown)).deploy({}),
    ):
        pass


def test_a_page_that_breaks_off_is_no_reference(page):
    broken = "<?php echo str_repeat('x', 100000); flush(); no_such_function();"

    with (
        pytest.raises(NotReady, match=r"the program behind it failed: Fatal error: .*no_such_function"),
        target("nginx", page(broken)).deploy({}),
    ):
        pass


@pytest.mark.parametrize("front", ["apache", "nginx"])
def test_a_page_that_begins_to_fail_with_status_200_is_no_goodput(front: str, page, tmp_path: Path):
    failing = "if (file_exists(__DIR__ . '/broken')) { no_such_function(); }"
    content = page(f"<?php ini_set('display_errors', '1'); {failing} echo 'a shop';")

    with target(front, content).deploy({}) as deployment:
        before = send(deployment)
        (tmp_path / "broken").touch()
        after = send(deployment)

    assert (before.correct > 0, before.failures.total) == (True, 0)
    assert (after.correct, after.failures.length > 0) == (0, True)


def send(deployment: Deployment) -> LoadResult:
    workload = Workload(
        url=deployment.load.url, connections=2, keepalive=True, duration_s=0.5,
        body_bytes=deployment.load.body_bytes, response_bytes=deployment.load.response_bytes,
        body=deployment.load.body,
        directory=deployment.load_places[0].directory,
    )  # fmt: skip
    load, host = Wrk(), deployment.host
    for path, written in load.files(workload).items():
        host.write(path, FileState(content=written))
    completed = host.run(load.command(workload), timeout_s=10)
    outputs = {path: host.read(path).content or b"" for path in load.outputs(workload)}
    return load.parse(completed, outputs, workload)


def test_a_page_that_fails_with_500_says_why(page):
    with (
        pytest.raises(NotReady, match=r"answered 500 .*no_such_function"),
        target("nginx", page("<?php no_such_function();")).deploy({}),
    ):
        pass


def test_php_that_dies_under_the_front_has_crashed(page):
    with target("nginx", page("<?php echo 'fine';")).deploy({}) as deployment:
        os.kill(deployment.server_pids["php-fpm"], 9)
        deployment.processes["php-fpm"].stop(timeout_s=5)

        with pytest.raises(Crashed, match=r"^php-fpm: it was killed by signal 9"):
            deployment.check_alive()
