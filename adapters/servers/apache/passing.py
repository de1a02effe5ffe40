"""Find which program answers a request by FastCGI: by its virtual host, and the sections that hold for it.

https://httpd.apache.org/docs/2.4/vhosts/details.html, https://httpd.apache.org/docs/2.4/sections.html. Where
a part cannot be told, as an <If>, it is taken to hold.
"""

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from tuner.adapters.servers.apache.syntax import Directive, Section
from tuner.ports import SentRequest

INDEX = "index.php"
_PROGRAM = re.compile(r"(?:proxy:)?(?:(unix:[^|]+)\||fcgi://([^/]+))")
_BALANCER = "balancer://"
_ANY = frozenset({"*", "_default_"})


def find_programs(directives: Sequence[Directive], request: SentRequest) -> tuple[str, ...]:
    """Return where programs are asked that answer a request; none where the server answers itself."""
    host = _choose_host(directives, request)
    of_host = [each for each in directives if _host_of(each) == host]
    # What the host says comes after what the server says for all.
    own = [each for each in directives if host is not None and _host_of(each) is None] + of_host
    path = request.path.partition("?")[0]
    # Where no file is named it is the program's index, also behind rules that rewrite.
    for asked in (path, f"{path.rstrip('/')}/{INDEX}", f"/{INDEX}"):
        target = _find_passed([*of_host, *own], asked) or _find_handler(own, asked)
        if target is not None:
            return tuple(_addresses(target, directives))
    return ()


def _host_of(directive: Directive) -> Section | None:
    return next((each for each in directive.sections if each.name == "virtualhost"), None)


def _choose_host(directives: Iterable[Directive], request: SentRequest) -> Section | None:
    """Return the virtual host by address, then by name; the first of an address is its default."""
    names: dict[Section, list[str]] = {}
    for each in directives:
        if (host := _host_of(each)) is not None:
            own = names.setdefault(host, [])
            own += each.words if each.name in {"servername", "serveralias"} else ()
    fits = {host: _fit(host.argument, request) for host in names}
    best = [host for host in names if fits[host] == max(fits.values()) > 0]
    return next((host for host in best if _is_named(request.host, names[host])), next(iter(best), None))


def _fit(argument: str, request: SentRequest) -> int:
    """Tell how well an address fits: 2 for itself, 1 for any address, 0 for not at all."""
    found = 0
    for word in argument.split():
        address, _, port = word.rpartition(":") if re.search(r":(\d+|\*)$", word) else (word, "", "*")
        if port in {"*", str(request.port)}:
            found = max(found, 2 * (address.strip("[]") in request.addresses), int(address in _ANY))
    return found


def _is_named(host: str, names: Iterable[str]) -> bool:
    plain = (name.lower().rpartition("://")[2].partition(":")[0] for name in names)
    return any(fnmatchcase(host.lower(), name) for name in plain)


def _find_passed(directives: Iterable[Directive], path: str) -> str | None:
    """Return the URL of the first ProxyPass for a path; None where there is none."""
    for each in directives:
        location = next((part.argument for part in each.sections if part.name == "location"), None)
        words = each.words if location is None else (location.strip("\"'"), *each.words)
        if each.name not in {"proxypass", "proxypassmatch"} or len(words) <= 1:
            continue
        is_match = each.name == "proxypassmatch"
        if re.search(words[0], path) if is_match else path.startswith(words[0]):
            return None if words[1] == "!" else words[1]
    return None


def _find_handler(directives: Sequence[Directive], path: str) -> str | None:
    """Return the handler of a path that is a program, by the last section that holds."""
    file = _file_of(directives, path)
    holding = [
        each.words[0]
        for each in directives
        if each.name == "sethandler"
        and each.words
        and all(_holds(part, path, file) for part in each.sections)
    ]
    return holding[-1] if holding and holding[-1].startswith("proxy:") else None


def _file_of(directives: Iterable[Directive], path: str) -> str:
    root, prefix = "/var/www/html", ""
    for each in directives:
        if each.name == "documentroot" and each.words and not prefix:
            root = each.words[0]
        elif each.name == "alias" and len(each.words) > 1 and path.startswith(each.words[0]):
            prefix, root = each.words
    return f"{root.rstrip('/')}/{path.removeprefix(prefix).lstrip('/')}"


def _holds(section: Section, path: str, file: str) -> bool:
    name, argument = section.name, section.argument.strip("\"'")
    of_location = name.startswith("location")
    subject = path if of_location else file.rpartition("/")[2] if name.startswith("files") else file
    if name.endswith("match") or argument.startswith("~"):
        return re.search(argument.removeprefix("~").strip(" \"'"), subject) is not None
    if name == "files":
        return fnmatchcase(subject, argument)
    if name in {"location", "directory"}:
        wanted = argument.rstrip("/")
        return subject == wanted or fnmatchcase(subject, f"{wanted}/*")
    return name not in {"proxy", "limit", "limitexcept"}


def _addresses(target: str, directives: Iterable[Directive]) -> Iterable[str]:
    if target.startswith(_BALANCER):
        name = target.partition("/")[2].strip("/").partition("/")[0]
        for each in directives:
            around = [part.argument.strip("\"'").rstrip("/") for part in each.sections]
            if each.name == "balancermember" and f"{_BALANCER}{name}" in around:
                yield from _addresses(each.words[0], ())
    elif found := _PROGRAM.match(target):
        yield found[1] or found[2]
