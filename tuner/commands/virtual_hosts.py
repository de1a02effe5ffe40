"""Proposes the load for an installed server: the pages of its virtual hosts that answer on this machine."""

import json
from dataclasses import dataclass

from tuner.deploy.readiness import ANSWER_S, OK, Manner, request
from tuner.hosts.url import parse_url
from tuner.ports import Host, Installation, RequestKind

MOST_PROPOSED = 10
MANNER = Manner(keepalive=True)
OWN = "http://127.0.0.1"
"""Where a host asks its own server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedLoad:
    """What to ask an installed server for."""

    url: str
    requests: tuple[RequestKind, ...] = ()
    """A request for each virtual host; empty for the URL alone."""

    def as_yaml(self, server: str) -> str:
        """Return the keys of `load:` that say so, as they stand in a study file."""
        lines = [f"path: {json.dumps(self.url)}             # a page that {server} makes"]
        if len(self.requests) == 1:
            lines.append(f"headers: {json.dumps(dict(self.requests[0].headers))}")
        elif self.requests:
            lines += [
                "# The virtual hosts that answer here; weight is the share of each.",
                "requests:",
            ]
            lines += [
                f"  - {{path: {each.path}, headers: {json.dumps(dict(each.headers))}, weight: 1}}"
                for each in self.requests
            ]
        return "\n  ".join(lines)


def propose_load(host: Host, installation: Installation) -> ProposedLoad | None:
    """Return what a running server answers with 200: its virtual hosts by name, or its default page.

    A virtual host without TLS is asked at this machine's own address, whatever its name leads to; one with
    TLS by its name alone, as that is part of the handshake. None where the server's port is not known.
    """
    sites = installation.sites[:MOST_PROPOSED]
    port = installation.port
    if port is not None:
        own = f"{OWN}{'' if port == 80 else f':{port}'}/"  # noqa: PLR2004 - of HTTP
        named = [parse_url(site, where="server_name") for site in sites]
        kinds = (
            RequestKind(path="/", headers={"Host": each.host})
            for each in named
            if each.scheme == "http" and each.port == port
        )
        answering = tuple(each for each in kinds if _answers(host, own, each))
        if answering:
            return ProposedLoad(url=own, requests=answering)
    for site in sites:
        if _answers(host, site):
            return ProposedLoad(url=site)
    return None if port is None else ProposedLoad(url=own)


def _answers(host: Host, url: str, kind: RequestKind | None = None) -> bool:
    asked = RequestKind(path="/") if kind is None else kind
    return request(host, url, kind=asked, manner=MANNER, timeout_s=ANSWER_S).status == OK
