"""What `tuner check` says of a host without a study: on machines in memory that have a few programs each."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath

import pytest

from tuner.commands.host_check import check_host
from tuner.errors import TargetError
from tuner.ports import Argv, Completed
from tuner.testing.fakes import MemoryHost, MemorySandbox, completed

HAPROXY = {"/usr/sbin/haproxy": "HAProxy version 3.0.5\n"}
NGINX = "nginx version: nginx/1.26.3\nconfigure arguments: --prefix=/etc/nginx --user=nginx\n"
AB = {"ab": "This is ApacheBench, Version 2.3 <$Revision: 1923142 $>\n"}


class ClosedHost(MemoryHost):
    """A host whose kernel lets nobody open a sandbox."""

    @contextmanager
    def sandbox(self, *, share: PurePosixPath | None = None) -> Iterator[MemorySandbox]:
        raise TargetError("memory: no sandbox can be opened. Run as root.")
        yield MemorySandbox(share=share)


def fill(host: MemoryHost, *, lacking: str = "", **printed: str) -> MemoryHost:
    """Give a Fedora programs that print something."""

    def say(_host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
        return completed(argv, stdout=printed[argv[0]].encode())

    def find(_host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
        return completed(argv, stdout=b"/usr/bin/dnf\n" if "dnf" in argv else lacking.encode())

    host.commands |= {**dict.fromkeys(printed, say), "sh": find}
    return host


def test_what_is_there_is_named_with_its_build_and_what_is_not_with_its_package():
    found = check_host(fill(MemoryHost(), nginx=NGINX, **HAPROXY, **AB))

    lines = found.as_text().splitlines()
    assert "  haproxy 3.0.5    /usr/sbin/haproxy; installed; tuned as a private instance" in lines
    assert any("nginx 1.26.3" in each and "build of nginx.org, container image" in each for each in lines)
    assert "  apache           not found. Install it: dnf install httpd" in lines
    assert "  ab 2.3           found" in lines
    assert lines[-1] == "ready"
    assert found.as_json()["ready"] is True


@pytest.mark.parametrize(
    ("host", "said"),
    [
        (fill(MemoryHost(), **AB), "no server that tuner knows was found. Install one of those above."),
        (fill(MemoryHost(), **HAPROXY), "no load generator was found. Install one of those above."),
        (fill(MemoryHost(), lacking="ss\nopenssl\n", **HAPROXY, **AB), "tuner needs ss. Install"),
        (fill(ClosedHost(), **HAPROXY, **AB), "memory: no sandbox can be opened."),
    ],
)
def test_a_host_on_which_nothing_can_be_tuned_is_not_ready(host: MemoryHost, said: str):
    found = check_host(host)

    assert found.trouble.startswith(said)
    assert found.as_text().splitlines()[-1] == f"not ready: {found.trouble}"
    assert found.as_json()["ready"] is False


def test_what_only_tls_needs_is_named_and_stops_nothing():
    found = check_host(fill(MemoryHost(), lacking="openssl\n", **HAPROXY, **AB))

    assert "  openssl          not found. Install it: dnf install openssl" in found.as_text().splitlines()
    assert found.trouble == ""


def test_a_program_that_is_there_but_says_nothing_known_is_not_to_be_installed():
    found = check_host(fill(MemoryHost(), nginx="I am a wrapper", **AB))

    assert "I am a wrapper" in found.missing["nginx"]
    assert "nstall it" not in found.missing["nginx"]
