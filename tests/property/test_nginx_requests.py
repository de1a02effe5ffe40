"""A running nginx answers each request from the very block that is found in its files."""

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import PurePosixPath

import pytest

from tests.property import ask_pages
from tests.property.nginx_configurations import FILES, Asked, Generator
from tuner.adapters.hosts.local import LocalHost
from tuner.adapters.servers.nginx.follow import DIRECTORY, FILE
from tuner.adapters.servers.nginx.layout import Layout
from tuner.adapters.servers.nginx.listen import group_of
from tuner.adapters.servers.nginx.settings import Scope
from tuner.adapters.servers.nginx.tree import join_files
from tuner.ports import FileState, Sandbox, SentRequest

CONFIGURATIONS = 100
SEED = 7
_MAIN = """\
worker_processes 1; pid {root}/nginx.pid; error_log {root}/error.log; daemon off;
events {{ worker_connections 2000; }}
http {{
client_body_temp_path {root}/body; proxy_temp_path {root}/proxy; fastcgi_temp_path {root}/fastcgi;
uwsgi_temp_path {root}/uwsgi; scgi_temp_path {root}/scgi; variables_hash_max_size 4096; access_log off;
ssl_certificate {root}/tls.pem; ssl_certificate_key {root}/tls.key;
{servers}
server {{ add_header X-Block silent always; root {root}/html; server_name silent.test; }}
server {{ listen 80; add_header X-Block said always; return 200 said; }}
}}
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """A sandbox with a certificate and some pages."""
    with LocalHost().sandbox() as opened:
        for name in FILES:
            opened.write(opened.directory / name, FileState(content=b"page", mode=0o644))
        key, certificate = (f"{opened.directory}/tls.{end}" for end in ("key", "pem"))
        run(opened, "chmod", "-R", "a+rX", str(opened.directory))
        run(
            opened, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-nodes", "-subj", "/CN=tuner", "-keyout", key, "-out", certificate,
        )  # fmt: skip
        yield opened


def run(sandbox: Sandbox, *argv: str) -> None:
    done = sandbox.run(argv, timeout_s=20)
    assert done.returncode == 0, done.stderr.decode()


def test_each_page_comes_from_the_block_that_is_found(sandbox: Sandbox):
    root = str(sandbox.directory)
    generator = Generator(SEED, root)
    written = [generator.write(10_000 + 2 * number) for number in range(CONFIGURATIONS)]
    main = PurePosixPath(root, "nginx.conf")
    text = _MAIN.format(root=root, servers="\n".join(servers for servers, _ in written)).encode()
    sandbox.write(main, FileState(content=text, mode=0o644))
    silent = [
        Asked(scheme="http", address="127.0.0.1", port=80, host=host, path="/")
        for host in ("silent.test", "b.test")
    ]
    requests = [*silent, *(each for _, some in written for each in some)]
    layout = Layout(join_files(main, {main: text}), {main: text}, {"prefix": root})

    answers = ask(sandbox, main, requests)

    found = [find_blocks(layout, asked, sandbox) for asked in requests]
    wrong = [
        f"{asked}: {answer}, and {blocks} was found"
        for asked, answer, blocks in zip(requests, answers, found, strict=True)
        if is_page(answer) and answer.split(" ")[1] not in blocks
    ]
    assert wrong == []
    assert sum(map(is_page, answers)) > len(requests) / 2
    assert sum(len(blocks) > 1 for blocks in found) < len(requests) / 20


def is_page(answer: str) -> bool:
    """Return whether it is no error and no redirect, or nothing at all."""
    return answer.startswith(("2", "none"))


def ask(sandbox: Sandbox, main: PurePosixPath, requests: list[Asked]) -> list[str]:
    """Start nginx with a configuration and send it the requests."""
    asked = [(each.scheme, each.address, each.port, each.host, each.path) for each in requests]
    script = 'until [ -s "$1" ]; do sleep 0.02; done; shift; exec "$@"'
    program = ("sh", "-c", script, "sh", str(main.parent / "nginx.pid"), sys.executable, ask_pages.__file__)
    nginx = sandbox.start(("nginx", "-c", str(main)), cpus=None)
    try:
        # Its id is written when it listens.
        done = sandbox.run(program, timeout_s=300, stdin=json.dumps(asked).encode())
    finally:
        nginx.stop(timeout_s=5)
    assert done.returncode == 0, (done.stderr + nginx.output()).decode()
    found: list[str] = json.loads(done.stdout)
    return found


def find_blocks(layout: Layout, asked: Asked, sandbox: Sandbox) -> set[str]:
    """Return the names of the blocks that may answer; `none` where nothing listens."""
    if not group_of(layout.listeners, asked.address, asked.port, asked.host):
        return {"none"}
    is_named = asked.scheme == "https" and not asked.host.replace(".", "").isdigit()
    request = SentRequest(
        scheme=asked.scheme, addresses=(asked.address,), port=asked.port, host=asked.host, path=asked.path,
        server_name=asked.host if is_named else "",
    )  # fmt: skip
    aimed = layout.aim([request], partial(look, PurePosixPath(sandbox.directory)))
    found = set()
    for chain in aimed.chains[Scope.REQUEST]:
        names = [block.inside("add_header")[0].arguments[1] for block in chain if block.inside("add_header")]
        found.add(names[-1])
    return found


def look(root: PurePosixPath, path: PurePosixPath) -> str:
    """Return what a path of the sandbox is."""
    files = {root / name for name in FILES}
    folders = {folder for file in files for folder in file.parents}
    return FILE if path in files else DIRECTORY if path in folders else ""
