"""Where in an installed configuration each setting stands, for the requests of the load.

A directive of a location overrides the one of its server, and that the one of `http`. So what acts on the
requests is read and changed where it stands; what others give is left alone.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import PurePosixPath

from tuner.adapters.servers.nginx.builds import PREFIX
from tuner.adapters.servers.nginx.follow import Look, find_pass, follow_request
from tuner.adapters.servers.nginx.listen import (
    DEFAULTS,
    find_carriers,
    find_host_names,
    find_plain,
    read_listeners,
    read_options,
)
from tuner.adapters.servers.nginx.locations import Chain
from tuner.adapters.servers.nginx.servers import find_servers
from tuner.adapters.servers.nginx.settings import (
    EVENTS,
    HTTP,
    MAIN,
    SETTINGS,
    Scope,
    Setting,
    scope_of,
)
from tuner.adapters.servers.nginx.syntax import ENCODING, Directive, line_of
from tuner.errors import TargetError
from tuner.ports import Facts, Files, Scalar, SentRequest

PARAMETERS = frozenset(DEFAULTS) | {name for setting in SETTINGS for name in setting.parameters}


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The directives that act for a setting; none where it is not given."""

    directives: tuple[Directive, ...] = ()
    reason: str = ""
    """Why it is left alone; empty where it can be changed."""


class Layout:
    """An installed configuration, and what of it acts on the requests of the load."""

    def __init__(
        self,
        tree: Directive,
        files: Files,
        build: Mapping[str, str],
        resolve: Callable[[Sequence[str]], Mapping[str, tuple[str, ...]]] = lambda _: {},
    ) -> None:
        """Read what acts on a request to the default server of the plain port, whatever its path.

        Args:
            tree: all files, put together.
            files: the files as they are.
            build: what `nginx -V` says that it was configured with (`prefix`, `http-log-path` …).
            resolve: gives the addresses of host names; of those that it leaves out they are not known.
        """
        self.main, self._files = tree, files
        self.prefix = PurePosixPath(build.get("prefix", PREFIX))
        self.access_log = self.prefix / build.get("http-log-path", "logs/access.log")
        """Where it logs that is not told where."""
        self.events = _find_block(tree, EVENTS)
        self.http = _find_block(tree, HTTP)
        self._times_read = Counter((each.path, each.begin) for each in tree.walk())
        names = find_host_names(self.http)
        self.listeners = read_listeners(self.http, resolve(names) if names else {})
        plain = find_plain(self.listeners)
        self.port = plain.port if plain else None
        self.passes_to: tuple[str, ...] = ()
        of_port = [each for each in self.listeners if each.port == self.port]
        self.carriers = find_carriers(of_port)
        chains = ((self.http, plain.server),) if plain else ((self.http,),)
        self.chains: Mapping[Scope, tuple[Chain, ...]] = dict.fromkeys(Scope, chains)
        """The blocks from `http` to the innermost one that acts; several where requests lead to several."""

    def aim(self, requests: Sequence[SentRequest], look: Look) -> "Layout":
        """Return what acts on these requests; `look` says which files there are."""
        aimed = copy(self)
        found: dict[Scope, list[Chain]] = {scope: [] for scope in Scope}
        for request in requests:
            servers, listeners = find_servers(self.listeners, request)
            if not servers:
                return aimed
            for scope, server in servers.items():
                found[scope].append((self.http, server))
            answering = found[Scope.REQUEST].pop()
            # A path is read before the name is known.
            merging = _innermost((self.http, servers[Scope.CONNECTION]), "merge_slashes")
            merges = not any(each.arguments[:1] == ("off",) for each in merging)
            found[Scope.REQUEST] += follow_request(
                answering, request, look, self.prefix, merges_slashes=merges
            ) or [answering]
            aimed.port, aimed.carriers = listeners[0].port, find_carriers(listeners)
        aimed.chains = {scope: tuple(dict.fromkeys(chains)) for scope, chains in found.items()}
        passing = (find_pass(chain) for chain in aimed.chains[Scope.REQUEST])
        aimed.passes_to = tuple(
            dict.fromkeys(address for each in passing if each for address in self._addresses(each))
        )
        return aimed

    def _addresses(self, passing: Directive) -> tuple[str, ...]:
        """Return where programs are asked by FastCGI: the servers of an upstream, or one address."""
        if passing.name != "fastcgi_pass" or not passing.arguments:
            return ()
        named = [each for each in self.http.inside("upstream") if each.arguments == passing.arguments]
        servers = [each.arguments[0] for upstream in named for each in upstream.inside("server")]
        return tuple(each for each in servers or passing.arguments if "$" not in each)

    def find_given(self, setting: Setting) -> Given:
        """Find the directives that act on the requests, and why they cannot be changed."""
        if setting.block != HTTP:
            block = self.main if setting.block == MAIN else self.events
            given = block.inside(setting.directive)
            # Pools of other names are other pools.
            pools = setting.directive == "thread_pool"
            return self._judge(
                tuple(each for each in given if not pools or each.arguments[:1] == ("default",))
            )
        ways = [_innermost(chain, setting.directive) for chain in self.chains[scope_of(setting)]]
        differing = next((each or ways[0] for each in ways if each != ways[0]), None)
        if differing is not None:
            return Given(
                directives=differing,
                reason=(
                    f"{self.place(differing[0])} sets this only for some requests, or only if a variable has "
                    "a certain value"
                ),
            )
        return self._judge(ways[0])

    def find_others(self, setting: Setting) -> tuple[Directive, ...]:
        """Return the directives of other sites or paths, which override for their requests what acts here."""
        if setting.block != HTTP:
            return ()
        blocks = [block for chain in self.chains[scope_of(setting)] for block in chain]
        own = [each for block in blocks for each in block.inside(setting.directive)]
        return tuple(each for each in self.http.walk() if each.name == setting.directive and each not in own)

    def place(self, directive: Directive) -> str:
        """Return file and line of a directive."""
        text = self._files[directive.path].decode(ENCODING)
        return f"{directive.path}:{line_of(text, directive.begin)}"

    def read(self, facts: Facts) -> tuple[dict[str, Scalar], dict[str, str]]:
        """Return what is active and can be changed, and for the rest why it is left alone."""
        current: dict[str, Scalar] = {}
        withheld: dict[str, str] = {}
        for setting in SETTINGS:
            given = self.find_given(setting)
            if setting.module and setting.module not in facts.modules:
                withheld |= dict.fromkeys(
                    setting.parameters, f"this nginx was built without {setting.module}"
                )
            elif given.reason:
                withheld |= dict.fromkeys(setting.parameters, given.reason)
            elif given.directives:
                found = setting.read(given.directives[0].arguments)
                current |= found
                unread = [name for name in setting.parameters if name not in found]
                withheld |= dict.fromkeys(unread, self._quote(given.directives[0]))
            else:
                current |= setting.default(facts)
        masks = self.main.inside("worker_cpu_affinity")
        if masks and masks[0].arguments[:1] != ("auto",):
            withheld["worker_processes"] = f"{self.place(masks[0])} gives each worker its own CPUs"
        options, reason = self._read_listen()
        return current | options, withheld | dict.fromkeys(DEFAULTS.keys() - options.keys(), reason)

    def _read_listen(self) -> tuple[dict[str, Scalar], str]:
        if not self.carriers:
            return {}, "no single `listen` has the options of all sockets of the port"
        if given := self._judge(self.carriers, most=len(self.carriers)).reason:
            return {}, given
        places = " and ".join(map(self.place, self.carriers))
        return read_options(self.carriers), f"{places} differ, or have a form that tuner does not change"

    def _judge(self, given: tuple[Directive, ...], most: int = 1) -> Given:
        """Return why directives that act together are left alone: nobody could change them as one."""
        if len(given) > most:
            places = " and ".join(map(self.place, given))
            return Given(directives=given, reason=f"{places} set this more than once")
        again = [each for each in given if self._times_read[each.path, each.begin] > 1]
        if again:
            return Given(
                directives=given,
                reason=f"{self.place(again[0])} is included more than once, so a change would affect others",
            )
        return Given(directives=given)

    def _quote(self, directive: Directive) -> str:
        written = " ".join(word.text for word in directive.words)
        return f"{self.place(directive)} says `{written[:80]}`, a form that tuner does not change"


def _innermost(chain: Chain, name: str) -> tuple[Directive, ...]:
    return next((found for block in reversed(chain) if (found := block.inside(name))), ())


def _find_block(tree: Directive, name: str) -> Directive:
    blocks = tree.inside(name)
    if not blocks:
        raise TargetError(
            f"nginx: {tree.path} has no {name} block, so this nginx serves no pages that tuner could tune. "
            "Add such a block, or start the nginx that serves your pages."
        )
    return blocks[0]
