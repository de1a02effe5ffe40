"""Follow a request inside a server as nginx does: rewrites, `return`, `try_files`, `index`, `error_page`.

Where a condition, a variable or a file cannot be told, all outcomes are kept that may give a page.
https://nginx.org/en/docs/http/ngx_http_rewrite_module.html, src/http/ngx_http_core_module.c.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from tuner.adapters.servers.nginx.locations import (
    Chain,
    Found,
    find_locations,
    find_named,
    list_locations,
    normalize_path,
    read_location,
)
from tuner.adapters.servers.nginx.patterns import search_pattern
from tuner.adapters.servers.nginx.syntax import Directive
from tuner.ports import SentRequest

Look = Callable[[PurePosixPath], str | None]
"""Says what a path is: `file`, `directory`, empty where there is nothing, None where that cannot be told."""
FILE, DIRECTORY = "file", "directory"
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_REDIRECTS = ("http://", "https://", "$scheme")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_FIRST_ERROR = 300
_FORBIDDEN, _NOT_FOUND, _CYCLE = 403, 404, 500


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """How far a request has come."""

    path: str
    arguments: str
    chain: Chain
    captures: tuple[str | None, ...] = ()
    variables: Mapping[str, str | None] | None = None
    status: int = 0
    """Of a response that a directive gave; 0 where the request goes on."""
    is_changed: bool = False
    """Whether a rewrite asks for another location."""
    is_error: bool = False
    """Whether it is an error's page that is looked for: one of its own errors has none."""
    is_ended: bool = False
    """Whether no more rewriting is done in this block."""
    is_lost: bool = False
    """Whether a variable led here, or anywhere else."""


def follow_request(
    chain: Chain, request: SentRequest, look: Look, prefix: PurePosixPath, *, merges_slashes: bool
) -> tuple[Chain, ...]:
    """Return the blocks, down to the innermost, that answer a request in a server.

    Args:
        chain: `http` and the server.
        request: what is asked for.
        look: says which files there are.
        prefix: where paths that are relative begin.
        merges_slashes: whether several slashes are one.
    """
    path, _, arguments = request.path.partition("?")
    path = normalize_path(path, merges_slashes=merges_slashes)
    state = _State(path=path, arguments=arguments, chain=chain)
    ends = list(_Follower(chain, request, look, prefix).enter(state))
    pages = [each for each in ends if each.status < _FIRST_ERROR] or ends
    return tuple(dict.fromkeys(each.chain for each in pages))


class _Follower:
    def __init__(self, server: Chain, request: SentRequest, look: Look, prefix: PurePosixPath) -> None:
        self._server, self._look, self._prefix = server, look, prefix
        self._values = _variables(request, server[-1])
        self._seen: set[tuple[str, str, str, bool]] = set()

    def enter(self, state: _State) -> Iterator[_State]:
        """Follow from the server's own rewrites on, as a new request and each internal redirect do."""
        if not self._is_new("", state):
            yield replace(state, status=_CYCLE)
            return
        for each in self._rewrite(replace(state, chain=self._server), self._server[-1].children):
            if each.is_lost:
                yield each
            elif each.status:
                yield from self._fail(each)
            else:
                yield from self._find(each)

    def _is_new(self, where: str, state: _State) -> bool:
        """Return whether this is looked for for the first time; what comes again would go round for ever."""
        before = len(self._seen)
        self._seen.add((where, state.path, state.arguments, state.is_error))
        return len(self._seen) > before

    def _find(self, state: _State) -> Iterator[_State]:
        if not self._is_new("location", state):
            yield replace(state, status=_CYCLE)
            return
        clean = replace(state, is_changed=False, is_ended=False)
        for found in find_locations(self._server, state.path):
            yield from self._answer(_enter(clean, found))

    def _answer(self, state: _State) -> Iterator[_State]:
        """Follow inside one location."""
        is_inside = len(state.chain) > len(self._server)
        children = state.chain[-1].children if is_inside else ()
        for each in self._rewrite(state, children):
            if each.is_lost:
                yield each
            elif each.status:
                yield from self._fail(each)
            elif each.is_changed:
                yield from self._find(each)
            else:
                yield from self._try_files(each)

    def _rewrite(self, state: _State, directives: Sequence[Directive]) -> list[_State]:
        """Run the directives of the rewrite module in their order."""
        states = [state]
        for directive in directives:
            if directive.name in _REWRITING:
                states = _merge(
                    after
                    for each in states
                    for after in ([each] if each.status or each.is_ended else self._run(each, directive))
                )
        return states

    def _run(self, state: _State, directive: Directive) -> Iterator[_State]:
        arguments = directive.arguments
        match directive.name:
            case "set" if len(arguments) > 1:
                value = self._fill(arguments[1], state)
                yield replace(state, variables={**(state.variables or {}), arguments[0][1:]: value})
            case "break":
                yield replace(state, is_ended=True, is_changed=False)
            case "return" if arguments:
                code = arguments[0]
                yield replace(state, status=int(code) if code.isdigit() else 302)
            case "rewrite" if len(arguments) > 1:
                yield from self._change(state, arguments)
            case "if":
                yield from self._branch(state, directive)
            case _:
                yield state

    def _change(self, state: _State, arguments: tuple[str, ...]) -> Iterator[_State]:
        pattern, target, *flags = arguments
        matched = search_pattern(pattern, state.path)
        if not isinstance(matched, re.Match):
            yield state
            if not matched:
                return
        captures = (matched[0], *matched.groups()) if isinstance(matched, re.Match) else ()
        state = replace(state, captures=captures)
        if target.startswith(_REDIRECTS) or flags in (["redirect"], ["permanent"]):
            yield replace(state, status=302)
            return
        changed = self._fill(target, state)
        if changed is None:  # to go on as if it did not match is one of the ways
            yield state
            yield from self._lead_anywhere(state)
            return
        path, _, more = changed.partition("?")
        yield replace(
            state, path=path, arguments="&".join(filter(None, (more, state.arguments))),
            is_changed=flags != ["break"], is_ended=bool(flags),
        )  # fmt: skip

    def _branch(self, state: _State, block: Directive) -> Iterator[_State]:
        """Take an `if`, pass it, or both where its condition cannot be told."""
        holds = self._holds(state, block.arguments)
        if holds is not True:
            yield state
        if holds is not False:
            inside = len(state.chain) > len(self._server)
            # Inside a location it is one of its own (ngx_http_rewrite_if); a later one takes its place.
            outer = state.chain if state.chain[-1].name != "if" else state.chain[:-1]
            yield from self._rewrite(
                replace(state, chain=(*outer, block)) if inside else state, block.children
            )

    def _holds(self, state: _State, words: tuple[str, ...]) -> bool | None:
        if not words or not words[0].startswith("(") or not words[-1].endswith(")"):
            return None
        # The parentheses may be words of their own.
        first, last = words[0] == "(", words[-1] == ")"
        condition = [words[0][1:], *words[1:]][first:]
        condition[-1] = condition[-1][:-1]
        match condition[: len(condition) - last]:
            case [tested]:
                value = self._fill(tested, state)
                return None if value is None else value not in {"", "0"}
            case [check, tested] if check.lstrip("!") in {"-f", "-d", "-e"}:
                kind = self._kind(self._fill(tested, state))
                wanted = {"f": {FILE}, "d": {DIRECTORY}, "e": {FILE, DIRECTORY}}[check[-1]]
                return None if kind is None else (kind in wanted) != check.startswith("!")
            case [tested, operator, wanted] if operator in {"=", "!=", "~", "~*", "!~", "!~*"}:
                return self._compare(state, tested, operator, wanted)
        return None

    def _compare(self, state: _State, tested: str, operator: str, wanted: str) -> bool | None:
        value = self._fill(tested, state)
        if value is None:
            return None
        is_negated = operator.startswith("!")
        if operator in {"=", "!="}:
            other = self._fill(wanted, state)
            return None if other is None else (value == other) != is_negated
        matched = search_pattern(wanted, value, is_caseless=operator.endswith("*"))
        return None if matched is True else (matched is not False) != is_negated

    def _try_files(self, state: _State) -> Iterator[_State]:
        given = state.chain[-1].inside("try_files")
        if not given:
            yield from self._serve(state)
            return
        *tests, last = given[0].arguments
        for test in tests:
            name = self._fill(test, state)
            wanted = DIRECTORY if test.endswith("/") else FILE
            kind = None if name is None else self._kind(self._map(state, name))
            if kind in {wanted, None}:
                # A folder is asked for without its slash (ngx_http_try_files_handler).
                path = state.path if name is None else name.removesuffix("/") or "/"
                yield from self._serve(replace(state, path=path))
            if kind == wanted:
                return
        yield from self._fall_back(state, last)

    def _fall_back(self, state: _State, target: str) -> Iterator[_State]:
        """Go where a redirect inside the server leads: a status, a name, or a path."""
        if target.startswith("="):
            yield from self._fail(replace(state, status=int(target[1:] or 0)))
        elif target.startswith("@"):
            for found in find_named(self._server, target) if self._is_new(target, state) else ():
                yield from self._answer(_enter(_clean(state), found))
        elif (filled := self._fill(target, state)) is None:
            yield replace(state, status=_NOT_FOUND)
            yield from self._lead_anywhere(state)
        else:
            path, _, arguments = filled.partition("?")
            yield from self.enter(replace(_clean(state), path=path, arguments=arguments))

    def _lead_anywhere(self, state: _State) -> Iterator[_State]:
        """Give every location as an end: where a variable leads, nobody can tell."""
        lost = replace(state, status=0, captures=(), is_ended=True, is_lost=True)
        yield from (replace(lost, chain=chain) for chain in list_locations(self._server))

    def _serve(self, state: _State) -> Iterator[_State]:
        """Answer with what the location passes to, or with files."""
        if _has_handler(state.chain):
            yield state
        elif state.path.endswith("/"):
            yield from self._open_index(state)
        elif self._kind(self._map(state, state.path)) == "":
            yield from self._fail(replace(state, status=_NOT_FOUND))
        else:
            yield state

    def _open_index(self, state: _State) -> Iterator[_State]:
        names = _nearest(state.chain, "index")
        # Looked at when the first file is missing (ngx_http_index_test_dir).
        folder = self._kind(self._map(state, state.path))
        for written in names.arguments if names else ("index.html",):
            name = self._fill(written, state)
            path = name if name is None or name.startswith("/") else state.path + name
            kind = FILE if name and name.startswith("/") else self._kind(path and self._map(state, path))
            if kind in {FILE, None} and path:
                yield from self.enter(replace(_clean(state), path=path))
            if kind == FILE:
                return
            if kind == "" and folder == "":
                yield from self._fail(replace(state, status=_NOT_FOUND))
                return
        yield from self._fail(replace(state, status=_FORBIDDEN))

    def _fail(self, state: _State) -> Iterator[_State]:
        """Give an error's page, where one is named; what is no error is an answer."""
        code = str(state.status)
        for block in reversed(state.chain):
            if given := block.inside("error_page"):
                pages = [each.arguments for each in given if code in each.arguments[:-1]]
                has_page = pages and not pages[0][-1].startswith(_REDIRECTS) and not state.is_error
                if has_page and state.status >= _FIRST_ERROR:
                    yield from self._fall_back(replace(state, is_error=True), pages[0][-1])
                    return
                break
        yield state

    def _kind(self, path: str | None) -> str | None:
        return None if path is None else self._look(self._prefix / path)

    def _map(self, state: _State, path: str) -> str | None:
        """Return the file of a path, by the nearest `root` or `alias`; None where a variable is not known."""
        for depth in range(len(state.chain), 0, -1):
            block = state.chain[depth - 1]
            if roots := block.inside("root"):
                root = self._fill(roots[0].arguments[0], state)
                return None if root is None else f"{self._prefix / root}{path}"
            if aliases := block.inside("alias"):
                target = self._fill(aliases[0].arguments[0], state)
                location = read_location(block)
                rest = "" if location.is_pattern else path.removeprefix(location.text)
                return (
                    None
                    if target is None
                    else f"{self._prefix / target}".rstrip("/")
                    + (f"/{rest}" if target.endswith("/") else rest)
                )
        return f"{self._prefix}/html{path}"

    def _fill(self, text: str, state: _State) -> str | None:
        """Put values in the place of variables; None where one is not known."""
        missing = False

        def value_of(found: re.Match[str]) -> str:
            nonlocal missing
            value = self._value(found[1] or found[2], state)
            missing = missing or value is None
            return value or ""

        filled = _VARIABLE.sub(value_of, text)
        return None if missing else filled

    def _value(self, name: str, state: _State) -> str | None:
        if name.isdigit():
            number = int(name)
            return (state.captures[number] or "") if number < len(state.captures) else None
        if name in {"uri", "document_uri"}:
            return state.path
        if name in {"args", "query_string"}:
            return state.arguments
        if name == "is_args":
            return "?" if state.arguments else ""
        if name in {"request_filename", "document_root"}:
            path = self._map(state, state.path if name == "request_filename" else "/")
            return None if path is None else path.rstrip("/")
        return self._values.get(name, (state.variables or {}).get(name))


def _variables(request: SentRequest, server: Directive) -> dict[str, str]:
    """Return the variables that stay the same all along a request."""
    names = server.inside("server_name")
    is_usual = request.port == _DEFAULT_PORTS.get(request.scheme)
    return {
        "host": request.host.lower(),
        "http_host": request.host if is_usual else f"{request.host}:{request.port}",
        "request_uri": request.path,
        "request_method": request.method,
        "scheme": request.scheme,
        "https": "on" if request.scheme == "https" else "",
        "server_name": names[0].arguments[0] if names else "",
    }


_REWRITING = frozenset({"set", "break", "return", "rewrite", "if"})


def _merge(states: Iterable[_State]) -> list[_State]:
    """Keep one of those that differ in nothing but variables, and of these what they agree on."""
    kept: dict[_State, Mapping[str, str | None]] = {}
    for each in states:
        key, known = replace(each, variables=None), each.variables or {}
        before = kept.get(key, known)
        kept[key] = {name: value for name, value in known.items() if before.get(name) == value}
    return [replace(key, variables=known) for key, known in kept.items()]


def _enter(state: _State, found: Found) -> _State:
    return replace(state, chain=found.chain, captures=found.captures or state.captures)


def _clean(state: _State) -> _State:
    """Forget what was decided before an internal redirect."""
    return replace(state, status=0, is_changed=False, is_ended=False)


def _nearest(chain: Chain, name: str) -> Directive | None:
    return next((block.inside(name)[0] for block in reversed(chain) if block.inside(name)), None)


def find_pass(chain: Chain) -> Directive | None:
    """Return the directive by which the innermost block has others answer; an `if` takes its location's."""
    for block in reversed(chain):
        for child in block.children:
            if child.name.endswith("_pass") or child.name in _HANDLERS or "content_by_" in child.name:
                return child
        if block.name != "if":
            break
    return None


_HANDLERS = frozenset({"stub_status", "empty_gif", "flv", "mp4", "perl", "js_content", "api", "echo"})


def _has_handler(chain: Chain) -> bool:
    return find_pass(chain) is not None
