"""Which private server passes requests to which, and where each of them listens in their sandbox."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from tuner.errors import UsageError
from tuner.ports import HTTP, BackendServer, Config, Facts, PrivateServer, Site, Upstream


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The private servers that accept connections, the one under load first."""

    ports: Mapping[str, int]
    """Port of each server, in the order of the study; one that listens on a Unix socket leaves it free."""
    backends: Mapping[str, str]
    """Server → the one that it passes requests to."""

    @property
    def front(self) -> str:
        """Return the server that is under load."""
        return next(iter(self.ports))

    @property
    def port(self) -> int:
        """Return where the load goes."""
        return self.ports[self.front]

    @property
    def from_the_end(self) -> tuple[str, ...]:
        """Return the servers in the order in which they start: nobody before whom it asks."""
        return tuple(reversed(self.walk()))

    def protocols(self, facts: Mapping[str, Facts]) -> dict[str, str]:
        """Return server → the protocol in which it asks the one that it passes requests to."""
        return {name: facts[backend].speaks for name, backend in self.backends.items()}

    def walk(self) -> list[str]:
        """Follow requests from the front on; a server that comes again ends it."""
        walked, name = [], self.front
        while name and name not in walked:
            walked.append(name)
            name = self.backends.get(name, "")
        return walked


def link(facts: Mapping[str, Facts], backends: Mapping[str, str], *, where: str = "servers") -> Chain:
    """Link the servers of a study: each passes requests to the next, unless the study says who to whom.

    Args:
        facts: of its servers, in its order; those that accept no connections stand beside the chain.
        backends: server → the one that it passes requests to, as the study says.
        where: what an error begins with.

    Raises:
        UsageError: none answers HTTP, one cannot ask the next, one is never asked, or the last answers
            nothing.
    """
    names = [name for name, each in facts.items() if each.port is not None]
    if not names:
        raise UsageError(
            f"{where}: none of {', '.join(facts)} accepts connections from the load generator. "
            f"Add a web server to `servers:`, as in `servers: [WEB SERVER, {', '.join(facts)}]`."
        )
    if facts[names[0]].speaks != HTTP:
        raise UsageError(
            f"{where}: {names[0]} speaks {facts[names[0]].speaks}, which no load generator speaks. Put a web "
            f"server before it that passes requests on, as `servers: [WEB SERVER, {names[0]}]`."
        )
    for name, backend in backends.items():
        _refuse_link(where, name, backend, facts)
    chain = Chain(ports=_number(facts, names), backends=backends or dict(pairwise(names)))
    _refuse_chain(where, chain, facts)
    return chain


def endpoint(server: PrivateServer, config: Config, site: Site, facts: Facts) -> Upstream:
    """Return where a private instance is asked: on its port, unless its adapter says otherwise."""
    if isinstance(server, BackendServer):
        return server.upstream(config, site)
    return Upstream(protocol=facts.speaks, port=site.port)


def _number(facts: Mapping[str, Facts], names: list[str]) -> dict[str, int]:
    """Give each server its usual port, or the next that no server before it has."""
    taken: dict[str, int] = {}
    for name in names:
        port = facts[name].port or 0
        while port in taken.values():
            port += 1
        taken[name] = port
    return taken


def _refuse_link(where: str, name: str, backend: str, facts: Mapping[str, Facts]) -> None:
    """Raise UsageError for a `backend:` that is no other server of the study that can be asked."""
    if backend not in facts or facts[backend].port is None:
        raise UsageError(
            f"{where}: the backend of {name} is {backend!r}, which is no server of this study that accepts "
            "connections. Name this backend in `servers:` as well."
        )
    if facts[name].port is None:
        raise UsageError(
            f"{where}: {name} cannot have a backend, because it receives no requests. Leave `backend:` out."
        )


def _refuse_chain(where: str, chain: Chain, facts: Mapping[str, Facts]) -> None:
    """Raise UsageError for servers that are not asked, ask in a circle or nobody, or lack a protocol."""
    walked = chain.walk()
    if chain.backends.get(walked[-1]):
        raise UsageError(
            f"{where}: {walked[-1]} passes requests back to {chain.backends[walked[-1]]}, in a circle. "
            "Name the server that receives the load first."
        )
    for name, backend in pairwise(walked):
        if facts[backend].speaks not in facts[name].passes_to:
            raise UsageError(
                f"{where}: a private instance of {name} cannot pass requests to {backend} "
                f"({facts[backend].speaks}). Put another server before {backend}, or leave one of them out."
            )
    if facts[walked[-1]].needs_backend:
        raise UsageError(
            f"{where}: {walked[-1]} answers no request itself, and only passes requests on. Put a server "
            f"behind it, as `servers: [{walked[-1]}, WEB SERVER]`, or an application, as `backend: "
            "{command: …}`."
        )
    for name in chain.ports:
        if name not in walked:
            raise UsageError(
                f"{where}: no server passes requests to {name}. Name {name} as the `backend:` of a server, "
                f"or leave {name} out."
            )
