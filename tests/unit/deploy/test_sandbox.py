import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, ClassVar

import pytest

from tests.page_server import KernelSettings, PageServer, split
from tuner.deploy.asked import ExpectedLoad
from tuner.deploy.builtin_pages import BUILTIN_PAGE
from tuner.deploy.chain import link
from tuner.deploy.content import Content, open_content
from tuner.deploy.readiness import Manner
from tuner.deploy.sandbox import Deadlines, SandboxTarget
from tuner.errors import ConfigRejected, Crashed, NotEffective, NotReady, TargetError
from tuner.hosts.placement import place
from tuner.ports import (
    H2C,
    HTTP1,
    Argv,
    Completed,
    Config,
    Facts,
    Files,
    FileState,
    RequestKind,
    Site,
    Upstream,
)
from tuner.testing.fakes import Command, MemoryHost, MemoryProcess, Program, completed, curl_gets, tail

SOMAXCONN = PurePosixPath("/proc/sys/net/core/somaxconn")
LOG = PurePosixPath("/sandbox/page/error.log")
GETS_THE_PAGE = curl_gets(200, BUILTIN_PAGE)
HASTY = Deadlines(check_s=1, listen_s=0.01, answer_s=0.01, retry_s=0, log_s=1)


def serve(host: MemoryHost, argv: Argv, process: MemoryProcess) -> None:
    settings = json.loads(host.read(PurePosixPath(argv[4])).content or b"")
    process.printed = b"starting\n"
    if "last_words" in settings:
        host.files[LOG] = FileState(content=b"notice: up\nerror: " + settings["last_words"].encode() + b"\n")
        process.end(1)
    elif not settings.get("never_listens"):
        host.listening.add(settings.get("own_port", settings["port"]))


def check(host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
    settings = json.loads(host.read(PurePosixPath(argv[4])).content or b"")
    refusal = settings.get("refusal")
    return completed(argv, returncode=1 if refusal else 0, stderr=(refusal or "").encode())


def listing(host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
    """Answer as ss does: the queue is what was asked, unless somaxconn is less."""
    settings = json.loads(host.read(PurePosixPath("/sandbox/page/settings.json")).content or b"")
    queue = min(settings["backlog"], int(host.read(SOMAXCONN).content or b"0"))
    return completed(argv, stdout=b"LISTEN 0 %d 0.0.0.0:8080 0.0.0.0:*" % queue)


def plan(
    *, curl: Command = GETS_THE_PAGE, program: Program = serve, content: Content | None = None
) -> SandboxTarget:
    host = MemoryHost(
        files={SOMAXCONN: FileState(content=b"4096\n")},
        commands={"curl": curl, "timeout": curl, "tail": tail, "ss": listing, sys.executable: check},
        programs={sys.executable: program},
    )
    content = content or open_content("builtin", "/index.html")
    servers: Mapping[str, Any] = {"page": PageServer(), "kernel": KernelSettings()}
    facts = {name: server.detect(host) for name, server in servers.items()}
    return SandboxTarget(
        host=host,
        servers=servers,
        facts=facts,
        chain=link(facts, {}),
        split=split,
        content=content,
        load=ExpectedLoad(page=RequestKind(path=content.path, body_bytes=content.body_bytes)),
        placement=place({0, 1}),
        deadlines=HASTY,
    )


class Programs(PageServer):
    """A server behind another, which says where it listens and knows the errors of its pages."""

    denied: ClassVar[tuple[str, ...]] = ()

    def upstream(self, config: Config, site: Site) -> Upstream:
        return Upstream(port=int(config.get("own_port", site.port)))

    def page_errors(self, _host: object, page: bytes, log: bytes) -> tuple[str, ...]:
        return tuple(line.decode() for line in (page + log).splitlines() if line.startswith(b"Fatal"))


def plan_in_two(config: Mapping[str, Any], *, page: bytes = BUILTIN_PAGE) -> SandboxTarget:
    single = plan(curl=curl_gets(200, page))
    facts = {"page": single.facts["page"], "programs": single.facts["page"]}
    return replace(
        single, servers={"page": PageServer(), "programs": Programs()}, facts=facts, chain=link(facts, {}),
        split=lambda _, name: config if name == "programs" else {},
        content=Content(directory=None, path="/index.html", body_bytes=None), load=ExpectedLoad(),
    )  # fmt: skip


def host_of(site_plan: SandboxTarget) -> MemoryHost:
    host = site_plan.host
    assert isinstance(host, MemoryHost)
    return host


def test_a_deployment_runs_answers_and_is_in_force():
    site_plan = plan()

    with site_plan.deploy({"backlog": 100, "net.core.somaxconn": 512}) as deployment:
        deployment.check_alive()
        assert deployment.load.url == "http://127.0.0.1:8080/index.html"
        assert (deployment.load.body_bytes, deployment.load.response_bytes) == (615, 815)
        assert deployment.effective == {"backlog": 100, "net.core.somaxconn": 512}
        assert deployment.processes.keys() == {"page"}
        assert deployment.duration_s > 0


def test_every_one_of_several_loads_is_asked_for_once_and_learned():
    wanted = {
        "b": ExpectedLoad(page=RequestKind(path="/b"), manner=Manner(keepalive=False)),
        "c": ExpectedLoad(
            page=RequestKind(path="/b"), manner=Manner(keepalive=False), requests=(RequestKind(path="/c"),)
        ),
    }
    site_plan = replace(plan(), other_loads=wanted)

    with site_plan.deploy({}) as deployment:
        page, mix = deployment.under("b").load, deployment.under("c").load

    assert deployment.other_loads.keys() == {"b", "c"}
    assert (page.url, page.body_bytes, page.response_bytes) == ("http://127.0.0.1:8080/b", 615, 815)
    assert (mix.url, mix.requests) == (page.url, (RequestKind(path="/c", body_bytes=615),))
    closing = [argv for argv in host_of(site_plan).sandboxes[0].ran if "Connection: close" in argv]
    assert {argv[-1].removeprefix("http://127.0.0.1:8080") for argv in closing} == {"/b", "/c"}


def test_the_mix_of_a_check_load_is_asked_for_only_when_it_is_sent():
    mix = RequestKind(path="/mix")
    site_plan = replace(plan(), check_loads={"mix": ExpectedLoad(page=mix, requests=(mix,))})

    with site_plan.deploy({}) as deployment:
        ran = host_of(site_plan).sandboxes[0].ran
        before = [argv for argv in ran if argv[-1].endswith("/mix")]
        asked = deployment.under_check_load("mix")
        usual = deployment.under_check_load("none")

    assert before == []
    assert (asked.load.url, asked.load.requests) == (
        "http://127.0.0.1:8080/mix", (RequestKind(path="/mix", body_bytes=615),),
    )  # fmt: skip
    assert usual.load == deployment.load


def test_a_page_of_another_load_that_is_of_another_length_is_not_ready():
    wanted = {"other": ExpectedLoad(page=RequestKind(path="/b", body_bytes=7), manner=Manner(keepalive=True))}

    with (
        pytest.raises(NotReady, match="where 200 with 7 bytes was expected"),
        replace(plan(), other_loads=wanted).deploy({}),
    ):
        pass


def test_leaving_a_deployment_ends_its_processes():
    site_plan = plan()

    with site_plan.deploy({}) as deployment:
        process = deployment.processes["page"]

    assert process.poll() is not None
    assert not host_of(site_plan).sandboxes[0].is_open


def test_an_error_of_the_caller_ends_the_processes_too():
    site_plan = plan()

    with pytest.raises(KeyboardInterrupt), site_plan.deploy({}):
        raise KeyboardInterrupt

    assert not host_of(site_plan).sandboxes[0].is_open


def test_kernel_settings_are_written_before_any_server_starts():
    def refuse_to_start_early(host: MemoryHost, argv: Argv, process: MemoryProcess) -> None:
        assert host.read(SOMAXCONN).content == b"512"
        serve(host, argv, process)

    with plan(program=refuse_to_start_early).deploy({"net.core.somaxconn": 512}) as deployment:
        deployment.check_alive()


def test_a_server_starts_after_the_one_that_it_passes_requests_to_and_knows_where_that_is():
    with plan_in_two({"own_port": 9000}).deploy({}) as deployment:
        written = deployment.sandbox.read(PurePosixPath("/sandbox/page/settings.json")).content
        assert list(deployment.processes) == ["programs", "page"]
        assert deployment.load.url == "http://127.0.0.1:8080/index.html"

    assert json.loads(written or b"")["backend"] == "127.0.0.1:9000"


def test_a_server_behind_another_has_a_port_of_its_own_and_must_listen_there():
    with (
        pytest.raises(NotReady, match=r"^page, programs: nothing listens on port 8081"),
        plan_in_two({"never_listens": True}).deploy({}),
    ):
        pass


def test_a_server_behind_another_that_dies_has_crashed_by_its_name():
    with plan_in_two({}).deploy({}) as deployment:
        process = deployment.processes["programs"]
        assert isinstance(process, MemoryProcess)
        process.end(1)

        with pytest.raises(Crashed, match=r"^programs: it ended by itself"):
            deployment.check_alive()


def test_a_failed_page_is_no_reference_whatever_its_status():
    with (
        pytest.raises(
            NotReady, match=r"answered 200, but the program behind it failed: Fatal error: no db\. Correct"
        ),
        plan_in_two({}, page=b"<p>\nFatal error: no db\n").deploy({}),
    ):
        pass


def test_a_failure_that_only_the_log_tells_is_found_too():
    def failing(host: MemoryHost, argv: Argv, process: MemoryProcess) -> None:
        host.files[LOG] = FileState(content=b"Fatal error: cut short\n")
        serve(host, argv, process)

    site_plan = plan_in_two({})
    host_of(site_plan).programs[sys.executable] = failing

    with (
        pytest.raises(NotReady, match="the program behind it failed: Fatal error: cut short"),
        site_plan.deploy({}),
    ):
        pass


class Secured(PageServer):
    """Keeps the sites that it was rendered for."""

    denied: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self.sites: list[Site] = []

    def render(self, config: Config, site: Site, facts: Facts) -> Files:
        self.sites.append(site)
        return super().render(config, site, facts)


def secured(server: PageServer, manner: Manner, *, curl: Command = GETS_THE_PAGE) -> SandboxTarget:
    site_plan = replace(plan(curl=curl), load=replace(plan().load, manner=manner), has_tls=True)
    site_plan.servers["page"] = server  # type: ignore[index]
    host_of(site_plan).commands["openssl"] = lambda *_: completed()
    return site_plan


def test_a_server_under_tls_gets_a_certificate_that_the_probe_checks_it_by():
    server = Secured()
    site_plan = secured(server, Manner(keepalive=True))

    with site_plan.deploy({}) as deployment:
        assert deployment.load.url == "https://127.0.0.1:8080/index.html"
        assert deployment.certificate == PurePosixPath("/sandbox/certificate/certificate.pem")

    (site,) = server.sites
    assert site.certificate is not None
    assert site.certificate.file == deployment.certificate
    asked = [argv for argv in host_of(site_plan).sandboxes[0].ran if argv[0] == "curl"]
    assert all(argv[argv.index("--cacert") + 1] == str(deployment.certificate) for argv in asked)


def test_only_the_server_under_load_speaks_what_the_load_speaks():
    front, behind = Secured(), Secured()
    site_plan = replace(
        plan_in_two({}),
        servers={"page": front, "programs": behind},
        load=ExpectedLoad(manner=Manner(keepalive=True, protocol=H2C)),
    )
    answer = completed(stdout=BUILTIN_PAGE, stderr=f"\n200 {len(BUILTIN_PAGE)} 200 2".encode())
    host_of(site_plan).commands["curl"] = lambda *_: answer

    with site_plan.deploy({}):
        assert ([each.protocol for each in front.sites], [each.protocol for each in behind.sites]) == (
            [H2C], [HTTP1],
        )  # fmt: skip


def test_a_compressed_page_may_have_any_length_but_no_other_content():
    manner = Manner(keepalive=True, accept_encoding="gzip")
    packed = completed(stdout=BUILTIN_PAGE, stderr=b"\n200 300 200 1.1")
    other = completed(stdout=BUILTIN_PAGE.upper(), stderr=b"\n200 300 200 1.1")
    site_plan = replace(plan(curl=lambda *_: packed), load=ExpectedLoad(manner=manner))

    with site_plan.deploy({}) as deployment:
        assert (deployment.load.body_bytes, deployment.load.response_bytes) == (300, 500)

    host_of(site_plan).commands["curl"] = lambda *_: other
    with pytest.raises(NotReady, match="another page"), site_plan.deploy({}):
        pass


def test_a_compressed_file_of_an_old_page_is_no_page_of_the_study():
    manner = Manner(keepalive=True, accept_encoding="gzip")
    old = completed(stdout=b"old", stderr=b"\n200 23 200 1.1")
    content = Content(directory=PurePosixPath("/srv/www"), path="/index.html", body_bytes=615)

    with (
        pytest.raises(NotReady, match="a page of 3 uncompressed bytes, where 615 bytes"),
        replace(plan(curl=lambda *_: old, content=content), load=ExpectedLoad(manner=manner)).deploy({}),
    ):
        pass


def test_nothing_is_written_outside_the_sandbox():
    site_plan = plan()

    with site_plan.deploy({"net.core.somaxconn": 512}):
        pass

    assert not host_of(site_plan).written


def test_a_server_runs_on_the_cpus_that_it_was_given_with_the_open_files_that_it_needs():
    def limits(host: MemoryHost, argv: Argv, process: MemoryProcess) -> None:
        host.files[PurePosixPath(f"/proc/{process.pid}/limits")] = FileState(
            content=b"Max open files            3000                 3000                 files\n"
        )
        serve(host, argv, process)

    with plan(program=limits).deploy({"open_files": 3000}) as deployment:
        process = deployment.processes["page"]
        assert isinstance(process, MemoryProcess)
        assert (process.cpus, process.open_files) == ({0}, 3000)


def test_a_document_root_is_shared_with_the_sandbox():
    directory = PurePosixPath("/srv/www")
    site_plan = plan(content=Content(directory=directory, path="/index.html", body_bytes=None))

    with site_plan.deploy({}) as deployment:
        assert host_of(site_plan).sandboxes[0].share == directory
        settings = deployment.sandbox.read(PurePosixPath("/sandbox/page/settings.json")).content

    assert json.loads(settings or b"")["page"] == "/sandbox/shared/index.html"


def test_a_configuration_that_the_check_refuses_is_rejected_in_its_own_words():
    with (
        pytest.raises(ConfigRejected, match=r"^page: the configuration is refused: refused: too many$"),
        plan().deploy({"refusal": "refused: too many"}),
    ):
        pass


def test_a_check_that_only_fails_is_rejected_with_what_it_printed():
    with pytest.raises(ConfigRejected, match="refused: Traceback"), plan().deploy({"refusal": "Traceback"}):
        pass


def test_a_check_that_succeeds_but_complains_is_rejected():
    site_plan = plan()
    host_of(site_plan).commands[sys.executable] = lambda *_: completed(stderr=b"refused: 5 is raised to 6\n")

    with pytest.raises(ConfigRejected, match="5 is raised to 6"), site_plan.deploy({}):
        pass


def test_a_check_that_hangs_is_rejected():
    site_plan = plan()
    host_of(site_plan).commands[sys.executable] = lambda *_: completed(returncode=-9, timed_out=True)

    with (
        pytest.raises(ConfigRejected, match="did not finish the check of the configuration within 1 s"),
        site_plan.deploy({}),
    ):
        pass


def test_a_refused_configuration_is_never_started():
    site_plan = plan()

    with pytest.raises(ConfigRejected), site_plan.deploy({"refusal": "refused: no"}):
        pass

    assert not host_of(site_plan).sandboxes[0].started


def test_a_server_that_ends_by_itself_has_crashed_and_its_log_says_why():
    with (
        pytest.raises(Crashed, match=r"^page: it ended by itself with status 1: error: out of memory$"),
        plan().deploy({"last_words": "out of memory"}),
    ):
        pass


def test_a_server_that_is_killed_later_is_seen_by_who_asks():
    with plan().deploy({}) as deployment:
        process = deployment.processes["page"]
        assert isinstance(process, MemoryProcess)
        process.end(-11)

        with pytest.raises(Crashed, match=r"page: it was killed by signal 11: starting$"):
            deployment.check_alive()


def test_a_server_that_never_listens_is_not_ready():
    with (
        pytest.raises(NotReady, match=r"^page: nothing listens on port 8080 after 0\.01 s"),
        plan().deploy({"never_listens": True}),
    ):
        pass


def test_a_server_that_answers_503_is_not_ready_and_its_log_is_quoted():
    def complaining(host: MemoryHost, argv: Argv, process: MemoryProcess) -> None:
        host.files[LOG] = FileState(content=b"error: no workers\n")
        serve(host, argv, process)

    with (
        pytest.raises(
            NotReady, match=r"page: .* answered 503 with 4 bytes.* Its log says: error: no workers"
        ),
        plan(curl=curl_gets(503, b"Busy"), program=complaining).deploy({}),
    ):
        pass


def test_a_value_that_did_not_take_is_not_effective_and_names_both():
    with (
        pytest.raises(NotEffective, match=r"^page: backlog: 9999 was requested, 4096 is active\.$"),
        plan().deploy({"backlog": 9999}),
    ):
        pass


def test_a_kernel_setting_that_did_not_take_stops_before_anything_is_started():
    class Rounding(KernelSettings):
        def effective(self, *arguments: Any, **named: Any) -> Any:
            return {name: int(value) + 1 for name, value in super().effective(*arguments, **named).items()}

    site_plan = plan()
    site_plan.servers["kernel"] = Rounding()  # type: ignore[index]

    with (
        pytest.raises(NotEffective, match=r"net\.core\.somaxconn: 512 was requested, 513 is active"),
        site_plan.deploy({"net.core.somaxconn": 512}),
    ):
        pass

    assert not host_of(site_plan).sandboxes[0].started


def test_a_program_that_is_missing_is_the_targets_fault_and_not_the_configurations():
    site_plan = plan()
    del host_of(site_plan).programs[sys.executable]

    with pytest.raises(TargetError, match="there is no program"), site_plan.deploy({}):
        pass


def test_the_log_of_a_deployment_is_what_was_printed_and_what_was_logged():
    with plan().deploy({}) as deployment:
        deployment.sandbox.write(LOG, FileState(content=b"logged\n"))

        assert deployment.instances[-1].read_log(deployment.sandbox, 5) == b"starting\nlogged\n"
