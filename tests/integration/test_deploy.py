import http.client
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from tests.integration.waiting import is_running, wait_until
from tests.page_server import KernelSettings, PageServer, split
from tuner.adapters.hosts.local import LocalHost
from tuner.deploy.asked import ExpectedLoad
from tuner.deploy.chain import link
from tuner.deploy.content import open_content
from tuner.deploy.sandbox import Deadlines, SandboxTarget
from tuner.errors import ConfigRejected, Crashed, NotEffective, NotReady
from tuner.hosts.placement import place
from tuner.ports import FileState, RequestKind

SOMAXCONN = PurePosixPath("/proc/sys/net/core/somaxconn")


def page_of(length: int | None) -> ExpectedLoad:
    return ExpectedLoad(page=RequestKind(path="/index.html", body_bytes=length))


@pytest.fixture
def plan() -> SandboxTarget:
    host = LocalHost()
    servers: Mapping[str, Any] = {"kernel": KernelSettings(), "page": PageServer()}
    facts = {name: server.detect(host) for name, server in servers.items()}
    return SandboxTarget(
        host=host,
        servers=servers,
        facts=facts,
        chain=link(facts, {}),
        split=split,
        content=open_content("builtin", "/index.html"),
        placement=place(os.sched_getaffinity(0)),
        load=page_of(615),
        deadlines=Deadlines(listen_s=5, answer_s=1, retry_s=0),
    )


def test_a_real_server_is_deployed_with_its_kernel_settings_and_ends_with_the_deployment(plan: SandboxTarget):
    with plan.deploy({"backlog": 3000, "net.core.somaxconn": 3000, "children": 2}) as deployment:
        process = deployment.processes["page"]
        assert deployment.effective == {"backlog": 3000, "net.core.somaxconn": 3000}
        assert deployment.load.body_bytes == 615
        assert deployment.load.response_bytes > 615
        deployment.check_alive()
        assert LocalHost().read(SOMAXCONN).content != b"3000\n"
        pid = process.pid
        assert is_running(pid)

    wait_until(lambda: not is_running(pid))
    assert process.poll() is not None


def test_two_deployments_after_each_other_use_the_same_port(plan: SandboxTarget):
    for _ in range(2):
        with plan.deploy({}) as deployment:
            assert deployment.load.url == "http://127.0.0.1:8080/index.html"


def test_a_port_that_is_taken_on_the_host_is_free_in_the_sandbox(plan: SandboxTarget):
    with plan.deploy({}), plan.deploy({}) as second:
        second.check_alive()

    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection("127.0.0.1", 8080, timeout=1).connect()


def test_a_backlog_above_somaxconn_is_not_effective(plan: SandboxTarget):
    with (
        pytest.raises(NotEffective, match=r"page: backlog: 3000 was requested, 100 is active"),
        plan.deploy({"backlog": 3000, "net.core.somaxconn": 100}),
    ):
        pass


def test_a_kernel_value_that_is_refused_is_rejected(plan: SandboxTarget):
    with (
        pytest.raises(ConfigRejected, match=r"somaxconn: the kernel refused '-5': Invalid argument"),
        plan.deploy({"net.core.somaxconn": -5}),
    ):
        pass


def test_open_files_are_raised_for_the_server(plan: SandboxTarget):
    with plan.deploy({"open_files": 1234}) as deployment:
        assert deployment.effective == {"open_files": 1234}


def test_a_configuration_that_the_server_refuses_is_never_started(plan: SandboxTarget):
    with (
        pytest.raises(ConfigRejected, match="page: the configuration is refused: refused: 5 workers"),
        plan.deploy({"refusal": "refused: 5 workers"}),
    ):
        pass


def test_a_server_that_ends_at_once_has_crashed_long_before_the_deadline(plan: SandboxTarget):
    patient = replace(plan, deadlines=Deadlines(listen_s=3600))

    with (
        pytest.raises(Crashed, match=r"page: it ended by itself with status 1: starting / cannot bind"),
        patient.deploy({"last_words": "cannot bind"}),
    ):
        pass


def test_a_server_that_never_listens_is_given_up(plan: SandboxTarget):
    hasty = replace(plan, deadlines=Deadlines(listen_s=0.3))

    with (
        pytest.raises(NotReady, match=r"page: nothing listens on port 8080 after 0\.3 s"),
        hasty.deploy({"never_listens": True}),
    ):
        pass


def test_a_server_that_listens_and_never_answers_is_given_up(plan: SandboxTarget):
    hasty = replace(plan, deadlines=Deadlines(answer_s=0.3, retry_s=0))

    with (
        pytest.raises(NotReady, match=r"index\.html gave no answer \(curl: \(28\) Operation timed out"),
        hasty.deploy({"silent": True}),
    ):
        pass


@pytest.mark.parametrize("status", [404, 503])
def test_a_server_that_answers_with_an_error_is_not_ready(plan: SandboxTarget, status: int):
    with (
        pytest.raises(NotReady, match=f"answered {status} with 615 bytes, where 200 with 615 bytes"),
        plan.deploy({"status": status}),
    ):
        pass


def test_a_server_that_is_killed_under_load_is_noticed(plan: SandboxTarget):
    with plan.deploy({}) as deployment:
        os.kill(deployment.processes["page"].pid, 9)
        wait_until(lambda: deployment.processes["page"].poll() is not None)

        with pytest.raises(Crashed, match=r"page: it was killed by signal 9: error: status 200"):
            deployment.check_alive()


def test_the_log_of_a_real_server_is_read(plan: SandboxTarget):
    with plan.deploy({}) as deployment:
        assert (
            deployment.instances[-1]
            .read_log(deployment.sandbox, 5)
            .startswith(b"starting\nnotice: answered 200\n")
        )


def test_a_document_root_is_served_from_a_directory_that_others_cannot_reach(
    plan: SandboxTarget, tmp_path: Path
):
    (tmp_path / "www").mkdir()
    (tmp_path / "www" / "index.html").write_text("hello, world")
    tmp_path.chmod(0o700)
    content = open_content(str(tmp_path / "www"), "/index.html")

    with replace(plan, content=content, load=page_of(12)).deploy({}) as deployment:
        assert deployment.load.body_bytes == 12
        shared = deployment.sandbox.directory / "shared" / "index.html"
        assert deployment.sandbox.read(shared).content == b"hello, world"


def test_a_page_that_grew_since_it_was_looked_at_is_not_ready(plan: SandboxTarget, tmp_path: Path):
    (tmp_path / "index.html").write_text("short")
    content = open_content(str(tmp_path), "/index.html")
    (tmp_path / "index.html").write_text("much longer")

    with (
        pytest.raises(NotReady, match="answered 200 with 11 bytes, where 200 with 5 bytes was expected"),
        replace(plan, content=content, load=page_of(content.body_bytes)).deploy({}),
    ):
        pass


def test_a_long_log_is_read_from_its_end(plan: SandboxTarget):
    with plan.deploy({}) as deployment:
        log = deployment.sandbox.directory / "page" / "error.log"
        deployment.sandbox.write(log, FileState(content=b"x" * 1_000_000 + b"the end"))

        said = deployment.instances[-1].read_log(deployment.sandbox, 5)

    assert said.endswith(b"xthe end")
    assert len(said) < 200_000


def test_an_error_of_the_caller_leaves_no_process(plan: SandboxTarget):
    pids: list[int] = []

    def measure_and_fail() -> None:
        with plan.deploy({}) as deployment:
            pids.append(deployment.processes["page"].pid)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_and_fail()

    assert not is_running(pids[0])


def test_the_server_runs_on_the_cpus_that_it_was_given(plan: SandboxTarget):
    with plan.deploy({}) as deployment:
        pid = deployment.processes["page"].pid
        assert os.sched_getaffinity(pid) == plan.placement.server_cpus
        assert sys.executable in Path(f"/proc/{pid}/cmdline").read_text()
