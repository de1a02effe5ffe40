"""Configurations of nginx in which every server and location says in a header which one it is.

Several of them live in one nginx, each on ports of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

ADDRESSES = ("127.0.0.1", "127.0.0.2", "::1")
HOSTS = (
    "a.test", "www.a.test", "x.y.a.test", "b.test", "c.b.test", "www.b.test", "www.c.org", "x7.test",
    "x77.test", "other.test", "A.Test", "127.0.0.1", "deep.c.test",
)  # fmt: skip
_NAMES = (
    "a.test", "www.a.test", "*.a.test", "*.y.a.test", ".b.test", "b.test", "*.b.test", "www.*", "www.c.*",
    "A.test", r"~^x(\d+)\.test$", r"~^X7\.", r"~\.c\.test$", '""', "_", "127.0.0.1",
)  # fmt: skip
PATHS = (
    "/", "/index.html", "/sub/", "/sub", "/sub/page.html", "/sub/deep/page.html", "/page.php", "/page.PHP",
    "/missing", "/missing.php", "/img/a.png", "/img/a.png?width=7", "/old/page", "/%73ub/page.html",
    "//sub//page.html", "/sub/../page.php", "/sub/./page.html", "/api/v1", "/api/", "/apis", "/sub%20x",
    "/to/page.php/more",
)  # fmt: skip
_LOCATIONS = (
    "/", "= /", "/sub", "/sub/", "^~ /sub/", "= /sub/page.html", "/sub/deep/", "/img/", "^~ /img/", "/api",
    "/api/", r"~ \.php$", r"~* \.php$", r"~ ^/sub/.*\.html$", r"~* \.(png|html)$", r"~ ^/old/(.+)$",
    "=/index.html", r"~\.php(?<rest>/.*)?$", "/to/", r"~ ^/(?:api|img)/", "/missing",
)  # fmt: skip
_NESTED = {
    "/": ("/sub/", r"~ \.html$", "= /page.php", "^~ /img/"),
    "/sub/": ("/sub/deep/", r"~ \.html$", "= /sub/page.html", "/sub/d"),
    "/api": ("/api/v1", "= /api/", r"~ v\d$"),
}
_BODIES = (
    "return 200 page;",
    "",
    "",
    "try_files $uri $uri/ /index.html;",
    "try_files $uri $uri/ /page.php?$args;",
    "try_files $uri $uri/ =404;",
    "try_files /page.php =404;",
    "try_files $uri @named;",
    "try_files $uri$http_nothing /sub/page.html;",
    "index page.php index.html;",
    "index nothing.html /page.php;",
    "rewrite ^/old/(.*)$ /sub/$1.html last;",
    "rewrite ^/sub/(.*)$ /img/$1 break;",
    "rewrite \\.php$ /index.html;",
    "rewrite ^/api(.*) /sub$1 last; rewrite ^/img /page.php last;",
    "error_page 404 = @named;",
    "error_page 404 /sub/page.html;",
    "error_page 418 = @named; return 418;",
    "if ($host = a.test) { ADD return 200 page; }",
    "if ($request_uri ~* page) { ADD }",
    "if (-f $request_filename) { ADD }",
    "if (!-e $request_filename) { rewrite ^ /page.php last; }",
    "if ($args) { ADD rewrite ^ /index.html break; }",
    "set $there /sub/page.html; rewrite ^/missing $there last;",
    "proxy_pass http://127.0.0.1:80; proxy_hide_header X-Block;",
    "root ROOT/other;",
    "alias ROOT/other/;",
    "return 404;",
)
_SERVER_LINES = (
    "", "", "",
    "rewrite ^/old/(.*)$ /$1.php;",
    "rewrite ^/api/ /sub/ last;",
    "if ($host ~ ^www) { rewrite ^/img/(.*)$ /sub/$1 last; }",
    "if ($host = b.test) { return 204; }",
    "index page.php index.html;",
    "error_page 404 /index.html;",
    "error_page 404 = @named;",
    "root ROOT/other;",
    "merge_slashes off;",
    "try_files $uri /page.php;",
    "location @named { ADD return 200 named; }",
)  # fmt: skip
FILES = (
    "html/index.html", "html/page.php", "html/sub/index.html", "html/sub/page.html",
    "html/sub/deep/page.html",
    "html/img/a.png", "other/page.php", "other/index.html", "other/sub/deep/page.html",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request, and where the client sends it."""

    scheme: str
    address: str
    port: int
    host: str
    path: str


class Generator:
    """Writes configurations from one seed."""

    def __init__(self, seed: int, root: str) -> None:
        self._random = Random(seed)  # noqa: S311 - drawn alike each time
        self._root, self._blocks = root, 0

    def write(self, port: int) -> tuple[str, tuple[Asked, ...]]:
        """Return servers on a port and the next one, where TLS is spoken, and requests to them."""
        defaults: set[tuple[str, int]] = set()
        # Either the one wildcard of IPv6 takes both, or each family has its own.
        takes_both = self._random.random() < 0.2
        servers = [
            self._server(port, defaults, takes_both=takes_both) for _ in range(self._random.randint(1, 5))
        ]
        return "\n".join(servers), tuple(self._ask(port) for _ in range(6))

    def _ask(self, port: int) -> Asked:
        scheme = self._random.choice(("http", "http", "https"))
        return Asked(
            scheme=scheme, address=self._random.choice(ADDRESSES), port=port + (scheme == "https"),
            host=self._random.choice(HOSTS), path=self._random.choice(PATHS),
        )  # fmt: skip

    def _server(self, port: int, defaults: set[tuple[str, int]], *, takes_both: bool) -> str:
        listens = list(self._listens(port, defaults, takes_both=takes_both))
        names = self._random.sample(_NAMES, self._random.randint(0, 3))
        lines = [
            *listens,
            *([f"server_name {' '.join(names)};"] if names else []),
            self._add(),
            *self._random.sample(_SERVER_LINES, self._random.randint(0, 3)),
            *map(self._location, _once(self._random.sample(_LOCATIONS, self._random.randint(0, 7)))),
        ]
        if not any(each.startswith("root") for each in lines):
            lines.append("root ROOT/html;")
        if not any("@named {" in each for each in lines):
            lines.append("location @named { ADD return 200 named; }")
        text = "\n  ".join(lines).replace("ROOT", self._root)
        while "ADD" in text:
            text = text.replace("ADD", self._add(), 1)
        return f"server {{\n  {text}\n}}"

    def _listens(self, port: int, defaults: set[tuple[str, int]], *, takes_both: bool) -> Iterator[str]:
        hosts = ("[::1]:", "[::]:")
        if not takes_both:
            hosts += ("127.0.0.1:", "127.0.0.2:", "", "*:")
        chosen: set[str] = set()
        for host in self._random.sample(hosts, self._random.randint(1, min(3, len(hosts)))):
            each = {"*:": ""}.get(host, host)
            if each in chosen:
                continue
            chosen.add(each)
            for offset, tls in ((0, ""), (1, " ssl")):
                is_first = (each, offset) not in defaults
                default = " default_server" if is_first and self._random.random() < 0.3 else ""
                defaults |= {(each, offset)} if default else set()
                both = (
                    " ipv6only=off"
                    if takes_both and each == "[::]:" and ("off", offset) not in defaults
                    else ""
                )
                defaults |= {("off", offset)} if both else set()
                yield f"listen {host}{port + offset}{tls}{default}{both};"

    def _location(self, where: str) -> str:
        nested = self._random.sample(
            _NESTED.get(where, ()), min(len(_NESTED.get(where, ())), self._random.randint(0, 2))
        )
        first, second = self._random.sample([each for each in _BODIES if _fits(where, each)], 2)
        bodies = [first] if self._random.random() < 0.7 or _excludes(first, second) else [first, second]
        inner = "".join(f" location {each} {{ ADD {self._random.choice(_BODIES)} }}" for each in nested)
        return f"location {where} {{ ADD {' '.join(bodies)}{inner} }}"

    def _add(self) -> str:
        self._blocks += 1
        return f"add_header X-Block {self._blocks} always;"


def _excludes(first: str, second: str) -> bool:
    """Return whether two bodies give the same directive, which may stand once only."""
    words = {body.split(" ")[0].replace("alias", "root") for body in (first, second)}
    # What `try_files` tries below an alias depends on both in ways that nobody wants.
    return len(words) == 1 or words == {"root", "try_files"}


def _fits(where: str, body: str) -> bool:
    """Return whether a body means something there: an alias of a pattern needs what that matched."""
    return ("~ " not in where and not where.startswith("~")) or not body.startswith("alias")


def _once(locations: list[str]) -> list[str]:
    """Drop what names a prefix again, which nginx refuses."""
    prefixes = {each.removeprefix("^~ "): each for each in locations}
    return list(prefixes.values())
