"""What a study arranges in its sandbox: pages, mix, application, and who passes requests to whom."""

from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

from tuner.deploy.application import NAME as APPLICATION
from tuner.deploy.application import Application
from tuner.deploy.asked import Wanted
from tuner.deploy.chain import Chain, link
from tuner.deploy.content import Content, open_content
from tuner.errors import UsageError
from tuner.ports import Config, Facts, RequestKind
from tuner.space import Space, SpaceFacts, describe_spaces, load_space
from tuner.study import LoadSettings, Study


def open_pages(settings: Study) -> Content:
    """Open what the private servers serve themselves; what an application answers is not known."""
    load, base = settings.load, settings.path.parent
    if settings.backend is not None:
        content = open_content(settings.content, "/", base=base)
        return replace(content, path=load.path, body_bytes=None, body=None, lengths={})
    mixed = [kind for each in settings.all_loads for kind in each.requests]
    others = [each.path for each in settings.all_loads]
    others += [each.path for each in mixed if each.status == HTTPStatus.OK]
    return open_content(settings.content, load.path, base=base, others=others)


def find_application(settings: Study) -> Mapping[str, Application]:
    """Return the application that the study starts, if there is one, as one more server."""
    backend = settings.backend
    if backend is None:
        return {}
    folder = str(settings.path.parent.resolve())
    return {APPLICATION: Application(command=backend.command, folder=folder, port=backend.port)}


def find_ready_paths(settings: Study) -> Mapping[str, str]:
    """Return server → the path that it answers when it is ready, where the study says one."""
    backend = settings.backend
    return {APPLICATION: backend.ready} if backend is not None and backend.ready else {}


def link_servers(settings: Study, facts: Mapping[str, Facts]) -> Chain:
    """Link the servers of a study. Raises UsageError for two on one port, too."""
    chain = link(facts, settings.backends, where=f"{settings.path}: servers")
    port = None if settings.backend is None else settings.backend.port
    if port is not None and chain.ports[APPLICATION] != port:
        other = next(name for name, taken in chain.ports.items() if taken == port)
        raise UsageError(
            f"{settings.path}: backend.port: {port} is where {other} listens. Let the application listen on "
            "another one."
        )
    return chain


def expect_loads(settings: Study, content: Content) -> Mapping[str, Wanted]:
    """Return what the other loads of a study with several ask for: load → pages and their lengths."""
    return {
        each.name: Wanted(
            path=each.load.path, keepalive=each.load.keepalive, requests=expect_lengths(each.load, content),
            body_bytes=content.lengths.get(each.load.path),
        )
        for each in settings.loads[1:]
    }  # fmt: skip


def expect_lengths(load: LoadSettings, content: Content) -> tuple[RequestKind, ...]:
    """Return the mix with the length of those responses that are files, and so known before any start."""
    return tuple(
        replace(each, body_bytes=content.lengths.get(each.path))
        if (each.method, each.status, each.body_bytes, dict(each.headers)) == ("GET", HTTPStatus.OK, None, {})
        else each
        for each in load.requests
    )


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
