"""What a study arranges in its sandbox: pages, mix, application, and who passes requests to whom."""

import gzip
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

from tuner import plugins
from tuner.deploy.application import NAME as APPLICATION
from tuner.deploy.application import Application
from tuner.deploy.asked import ExpectedLoad
from tuner.deploy.chain import Chain, link
from tuner.deploy.content import Content, open_content
from tuner.deploy.readiness import Manner
from tuner.errors import TargetError, UsageError
from tuner.ports import (
    H2,
    H2C,
    HTTP,
    HTTP1,
    TLS,
    WEBSOCKET,
    BodyCheck,
    Config,
    Facts,
    LoadGenerator,
    RequestKind,
)
from tuner.space import Space, SpaceFacts, describe_spaces, load_space
from tuner.study import LoadSettings, Study
from tuner.study.loads.builtin_loads import BUILTIN

DESCRIBED = {TLS: "HTTP/1.1 over TLS", H2: "HTTP/2 over TLS", H2C: "HTTP/2 in the clear"}
"""What a server may offer besides HTTP/1.1 in the clear, in words."""


def open_pages(settings: Study) -> Content:
    """Open what the private servers serve themselves; what an application answers is not known."""
    load, base = settings.load, settings.path.parent
    has_own_pages = settings.content == BUILTIN and not all(
        each.serves_content for each in settings.options.values()
    )
    if settings.backend is not None or has_own_pages:
        content = open_content(settings.content, "/", base=base)
        return replace(content, path=load.path, body_bytes=None, body=None, lengths={})
    mixed = [kind for each in settings.sent_loads for kind in each.requests]
    others = [each.path for each in settings.all_loads]
    others += [each.path for each in mixed if each.status == HTTPStatus.OK]
    content = open_content(settings.content, load.path, base=base, others=others)
    if not load.accepts_gzip:
        return content
    # A server that sends what lies there compressed needs something to send.
    pages = {name: page for name, page in content.files.items() if name.endswith(".html")}
    compressed = {f"{name}.gz": gzip.compress(page, mtime=0) for name, page in pages.items()}
    return replace(content, files={**content.files, **compressed})


def find_application(settings: Study) -> Mapping[str, Application]:
    """Return the application that the study starts, if there is one, as one more server."""
    backend = settings.backend
    if backend is None:
        return {}
    folder = settings.path.parent.resolve()
    command, speaks = _resolve_files(backend.command, folder), backend.protocol
    if backend.name:
        known = plugins.make_backend(backend.name)
        command, speaks = known.command(), known.speaks
    return {APPLICATION: Application(command=command, folder=str(folder), port=backend.port, speaks=speaks)}


def _resolve_files(command: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Return a command whose files in the folder of the study are named as a shell there would find them."""
    return tuple(
        f"{{folder}}/{word}"
        if (index or "/" in word) and not word.startswith("/") and (folder / word).is_file()
        else word
        for index, word in enumerate(command)
    )


def find_ready_paths(settings: Study) -> Mapping[str, str]:
    """Return server → the path that it answers when it is ready, where the study says one."""
    backend = settings.backend
    return {APPLICATION: backend.ready} if backend is not None and backend.ready else {}


def find_statuses(backends: Mapping[str, str], front: str) -> Collection[int]:
    """Return what is a correct answer, too, to a plain request for the page that is waited for.

    A server of WebSockets may say that it wants one (RFC 6455, section 4.4; RFC 9110, section 15.5.22).
    """
    wants_another = (HTTPStatus.BAD_REQUEST, HTTPStatus.UPGRADE_REQUIRED)
    return wants_another if backends.get(front) == WEBSOCKET else ()


def refuse_other_protocol(settings: Study, generator: LoadGenerator, protocol: str) -> None:
    """Raise UsageError when the load is not what the backend is for.

    Args:
        settings: the study; what a command or a script of its author's sends is not known.
        generator: of the load.
        protocol: in which the server under load asks the one behind it; empty where there is none.
    """
    load = settings.load
    sent, wanted = getattr(generator, "speaks", HTTP), WEBSOCKET if protocol == WEBSOCKET else HTTP
    if load.command or load.script or sent == wanted:
        return
    raise UsageError(
        f"{settings.path}: load.generator: {generator.name} sends {sent}, and this study needs "
        f"{wanted}. Write one of {', '.join(plugins.generators_of(wanted))}."
    )


def link_servers(settings: Study, facts: Mapping[str, Facts]) -> Chain:
    """Link the servers of a study. Raises UsageError for two on one port, too."""
    chain = link(facts, settings.backends, where=f"{settings.path}: servers")
    port = None if settings.backend is None else settings.backend.port
    if port is not None and chain.ports[APPLICATION] != port:
        other = next(name for name, taken in chain.ports.items() if taken == port)
        raise UsageError(
            f"{settings.path}: backend.port: the server {other} already listens on port {port}. Let the "
            "application listen on another port."
        )
    return chain


def require_offer(settings: Study, name: str, facts: Facts) -> None:
    """Raise UsageError or TargetError where a private server cannot be loaded as the study wants it."""
    offer = settings.load.offer
    missing = "" if offer == HTTP1 else facts.offers.get(offer)
    if missing:
        raise TargetError(f"{name}: this server cannot serve {DESCRIBED[offer]}: {missing}")
    if missing is None:
        able = [DESCRIBED[each] for each in sorted(facts.offers) if not facts.offers[each]]
        raise UsageError(
            f"{settings.path}: load: a private instance of {name} speaks no {DESCRIBED[offer]}; it speaks "
            f"{', '.join(('HTTP/1.1 in the clear', *able))}. Change `protocol:` or `tls:`, or put another "
            f"server before {name}."
        )


def manner_of(load: LoadSettings) -> Manner:
    """Return how single requests are sent to see what the load will get."""
    return Manner(
        keepalive=load.keepalive, protocol=load.protocol, accept_encoding=load.accept_encoding,
        certificate=load.certificate, verifies=load.verifies,
    )  # fmt: skip


def expect_page(load: LoadSettings, path: str, content: Content | None = None) -> RequestKind:
    """Return what is waited for: the request of the mix with a path, or a request for that path alone."""
    alone = RequestKind(path=path, headers=load.headers, body=load.body)
    page = next((each for each in load.requests if each.path == path), alone)
    return page if content is None or load.accept_encoding else _expect_length(page, content)


def expect_load(load: LoadSettings, content: Content) -> ExpectedLoad:
    """Return what a load asks for, with the length of those responses that are files."""
    return ExpectedLoad(
        page=expect_page(load, load.path, content), manner=manner_of(load),
        requests=tuple(_expect_length(each, content) for each in load.requests),
    )  # fmt: skip


def _expect_length(kind: RequestKind, content: Content) -> RequestKind:
    is_file = (kind.method, kind.status, kind.body_bytes) == ("GET", HTTPStatus.OK, None)
    is_open = kind.body.check in {BodyCheck.ANY, BodyCheck.CONTAINS}
    if not is_file or is_open or kind.headers:
        return kind
    return replace(kind, body_bytes=content.lengths.get(kind.path))


def split_packaged(space: Space, packaged: Mapping[str, Config], config: Config, server: str) -> Config:
    """Return one server's part of a configuration; of one that is not tuned, what its package ships."""
    return space.for_server(config, server) or packaged.get(server, {})


def find_packaged(chain: Chain, space: Space, facts: SpaceFacts) -> Mapping[str, Config]:
    """Return the defaults of those servers of a chain that the space does not tune, by their first own space.

    A server alone is left as the program has it, as it always was in studies of the kernel's settings.
    """
    tuned = {each.server for each in space.parameters}
    names = {row["server"]: row["name"] for row in reversed(describe_spaces())}
    untuned = [name for name in chain.ports if name not in tuned and name in names and len(chain.ports) > 1]
    spaces = {name: load_space([names[name]], facts=facts, base=Path()) for name in untuned}
    return {name: own.for_server(own.default(), name) for name, own in spaces.items()}
