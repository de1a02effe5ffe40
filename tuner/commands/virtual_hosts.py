"""Proposes the load for an installed server: the pages of its virtual hosts that answer on this machine."""

import json
from collections.abc import Collection
from dataclasses import dataclass, replace

from tuner.deploy.readiness import ANSWER_S, OK, Answer, Manner, request
from tuner.errors import UsageError
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
    verifies: bool = True
    """False where the page answers, but this machine does not trust its certificate."""
    trouble: str = ""
    """Why the page does not answer with 200 yet."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what a user has to know or to do about the page, in sentences."""
        if not self.verifies:
            return (
                f"The host does not trust the certificate of {self.url}, so the study has `verify: false`.",
                "To check the certificate, write `ca: FILE` in its place: the file of the certificate",
                "authority, or of the certificate itself if it is self-signed.",
            )
        said = f"{self.trouble}. Correct this, or `path:`, before you run `tuner check`."
        return (said,) if self.trouble else ()

    def as_yaml(self, server: str) -> str:
        """Return the keys of `load:` that say so, as they stand in a study file."""
        lines = [f"path: {json.dumps(self.url)}             # a page that {server} makes"]
        lines += [f"# {each}" for each in self.notes]
        lines += [] if self.verifies else ["verify: false"]
        if len(self.requests) == 1:
            lines.append(f"headers: {json.dumps(dict(self.requests[0].headers))}")
        elif self.requests:
            lines += [
                "# The virtual hosts of this server; weight is the share of requests that each one gets.",
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
    TLS by its name alone, as that is part of the handshake. Where none answers with 200, the proposal says
    why. None where the server's port is not known, and it has no virtual host that answers.
    """
    sites = installation.sites[:MOST_PROPOSED]
    port = installation.port
    own = None if port is None else f"{OWN}{'' if port == 80 else f':{port}'}/"  # noqa: PLR2004 - of HTTP
    if own is not None:
        named = [parse_url(site, where="server_name") for site in sites]
        kinds = (
            RequestKind(path="/", headers={"Host": each.host})
            for each in named
            if each.scheme == "http" and each.port == port
        )
        answering = tuple(each for each in kinds if _ask(host, own, kind=each).status == OK)
        if answering:
            return ProposedLoad(url=own, requests=answering)
    names = {parse_url(site, where="server_name").host for site in sites}
    tried = []
    for url in (*sites, *(() if own is None else (own,))):
        proposed = find_page_at(host, url, names)
        if not proposed.trouble:
            return proposed
        tried.append(proposed)
    if own is None:
        return None
    # Where the default page leads elsewhere, the site over TLS is what users ask for.
    return next((each for each in tried if each.url.startswith("https:")), tried[-1])


def find_page_at(host: Host, url: str, names: Collection[str] = ()) -> ProposedLoad:
    """Ask for a page, and for the one that it redirects to on the same host or one of these names."""
    answer = _ask(host, url)
    if _find_name(answer.location) in {_find_name(url), *names}:
        url = answer.location
        answer = _ask(host, url)
    if answer.status == OK:
        return ProposedLoad(url=url)
    is_unsafe = answer.status == 0 and url.startswith("https:")
    if is_unsafe and _ask(host, url, manner=replace(MANNER, verifies=False)).status == OK:
        return ProposedLoad(url=url, verifies=False)
    more = f" to {answer.location}" if answer.location else ""
    more += "" if answer.status else ". If the name does not lead to this host, add it to /etc/hosts"
    # It comes from a server, and goes into a comment of the study.
    return ProposedLoad(url=url, trouble=" ".join(f"{url} gives {answer.seen}{more}".split()))


def _find_name(url: str) -> str | None:
    """Return the name of the host in a URL; None for what is not one that a load can request."""
    try:
        return parse_url(url).host
    except UsageError:
        return None


def _ask(host: Host, url: str, *, kind: RequestKind | None = None, manner: Manner = MANNER) -> Answer:
    return request(host, url, kind=kind or RequestKind(path="/"), manner=manner, timeout_s=ANSWER_S)
