"""Everything that a start needs, found and checked once, before anything runs."""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from tuner import plugins
from tuner.content import Content, open_content
from tuner.deploy import SitePlan
from tuner.errors import TargetError, UsageError
from tuner.measure.load import Load
from tuner.placement import Placement, place
from tuner.ports import Facts, Host, LoadGenerator, Scalar, Server
from tuner.records import Fingerprint
from tuner.settings import Study
from tuner.space import Space, SpaceFacts, load_space

PORT = 8080
"""Port of the private server: each sandbox has its own network, so it can never be taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """A study's target, servers, space and load, ready to make starts."""

    settings: Study
    host: Host
    servers: Mapping[str, Server]
    facts: Mapping[str, Facts]
    space: Space
    load: Load
    site_plan: SitePlan
    placement: Placement
    fingerprint: Fingerprint


def prepare(settings: Study) -> Rig:
    """Find the programs, read the facts, build the space.

    Raises:
        UsageError: an adapter, a space or the content is wrong.
        TargetError: a program or a right is missing.
    """
    host = plugins.host(settings.target.host)
    servers = {name: plugins.server(name) for name in settings.servers}
    generator = plugins.load(settings.load)
    content = open_content(settings.content, settings.load.path)
    placement = place(os.sched_getaffinity(0))
    facts = {name: server.detect(host) for name, server in servers.items()}
    version = generator.version(host)
    space = load_space(
        settings.space, facts=space_facts(settings, host, facts, placement), base=settings.path.parent
    )
    _refuse_strangers(settings, space, servers)
    site_plan = SitePlan(
        host=host, servers=servers, facts=facts, split=space.for_server, content=content,
        placement=placement, port=PORT, keepalive=settings.load.keepalive, path=settings.load.path,
    )  # fmt: skip
    load = Load(generator=generator, settings=settings.load, placement=placement)
    return Rig(
        settings=settings, host=host, servers=servers, facts=facts, space=space, load=load,
        site_plan=site_plan, placement=placement,
        fingerprint=_fingerprint(facts, f"{generator.name} {version}", placement),
    )  # fmt: skip
