"""The script with which wrk looks at every response, of a mix or of one page, and how its counts are read.

wrk does not tell which request a response belongs to. So responses are sorted by status and length, and no
more of a sort are taken for correct than requests that want it were sent: what is above that was the answer
to another request. Where one kind of request may have any length, all of its status are one sort. A response
of a sort has to pass one of its tests: a least length, a text that it contains, or the whole body. A
response() function costs wrk some 2 µs of CPU for each response, so one page of a known length is sent
without it.
"""

from collections.abc import Iterator, Mapping, Sequence

from tuner.kit.load_output import as_count, as_list, as_object
from tuner.ports import Failures, RequestKind

STEPS = 1000
"""Of one round of a mix, at most: shares are kept to a thousandth."""
ANY = -1
"""Stands for any length."""
_PLAIN = frozenset(range(32, 127)) - set(b'"\\')
# wrk keeps what was sent and what came for each of its threads.
SCRIPT = """\
-- Written by tuner.
local order = {%(order)s}
local kinds = {%(kinds)s}
local sorts = {%(sorts)s}
local tests = {%(tests)s}
local threads = {}
local texts = {}
local position = 0
asked, sent, got, wrong = {}, {}, {}, {0, 0}

function setup(thread)
  thread:set("first", #threads * 7)
  threads[#threads + 1] = thread
end

function init()
  for index, kind in ipairs(kinds) do
    local headers = {}
    for name, value in pairs(wrk.headers) do headers[name] = value end
    for name, value in pairs(kind.headers) do headers[name] = value end
    texts[index] = wrk.format(kind.method, kind.path, headers, kind.body)
    asked[index] = 0
  end
  for index = 1, %(count)d do sent[index], got[index] = 0, 0 end
  position = first or 0
end

function request()
  position = position %% #order + 1
  local kind = order[position]
  asked[kind] = asked[kind] + 1
  sent[kinds[kind].sort] = sent[kinds[kind].sort] + 1
  return texts[kind]
end

local function passes(list, body)
  if #list == 0 then return true end
  for _, test in ipairs(list) do
    if (not test.length or #body == test.length) and #body >= (test.least or 0)
      and (not test.text or body:find(test.text, 1, true))
      and (not test.content or body == test.content) then return true end
  end
  return false
end

function response(status, headers, body)
  local lengths = sorts[status]
  if not lengths then
    wrong[1] = wrong[1] + 1
    return
  end
  local sort = lengths[#body] or lengths[-1]
  if sort and passes(tests[sort], body) then got[sort] = got[sort] + 1 else wrong[2] = wrong[2] + 1 end
end

function mix()
  local function add(name, count)
    local sums = {}
    for index = 1, count do
      sums[index] = 0
      for _, thread in ipairs(threads) do sums[index] = sums[index] + thread:get(name)[index] end
      sums[index] = string.format("%%.0f", sums[index])
    end
    return table.concat(sums, ", ")
  end
  return string.format('"mix": {"asked": [%%s], "sent": [%%s], "got": [%%s], "wrong": [%%s]}, ',
    add("asked", #kinds), add("sent", %(count)d), add("got", %(count)d), add("wrong", 2))
end
"""


def write_script(kinds: Sequence[RequestKind]) -> str:
    """Write the part of the script that sends the mix and sorts what comes."""
    sorts = _sorts(kinds)
    by_status: dict[int, list[str]] = {}
    for number, (status, length) in enumerate(sorts, start=1):
        by_status.setdefault(status, []).append(f"[{length}] = {number}")
    return SCRIPT % {
        "order": ", ".join(str(index + 1) for index in order_of([each.weight for each in kinds])),
        "kinds": ", ".join(_write_kind(each, _sort_of(each, sorts)) for each in kinds),
        "sorts": ", ".join(f"[{status}] = {{{', '.join(lengths)}}}" for status, lengths in by_status.items()),
        "tests": ", ".join(f"{{{_write_tests(kinds, sort)}}}" for sort in sorts),
        "count": len(sorts),
    }


def write_headers(headers: Mapping[str, str]) -> str:
    """Write the part of the script that adds headers to every request."""
    return "".join(f"wrk.headers[{_quote(name)}] = {_quote(value)}\n" for name, value in headers.items())


def order_of(weights: Sequence[float]) -> tuple[int, ...]:
    """Return one round of a mix: each kind's share is kept all along, not only at the end.

    The smooth weighted round-robin of nginx (ngx_http_upstream_round_robin.c): who is furthest behind its
    share comes next.
    """
    steps, total = _round_of(weights), sum(weights)
    due = [0.0] * len(weights)
    order = []
    for _ in range(steps):
        due = [behind + weight for behind, weight in zip(due, weights, strict=True)]
        chosen = max(range(len(due)), key=due.__getitem__)
        due[chosen] -= total
        order.append(chosen)
    return tuple(order)


def read_mix(values: object) -> tuple[int, Failures]:
    """Read how many responses were correct, and which were not. Raises ValueError for an odd shape."""
    mix = as_object(values)
    sent, got, wrong = ([as_count(each) for each in as_list(mix[name])] for name in ("sent", "got", "wrong"))
    correct = [min(asked, came) for asked, came in zip(sent, got, strict=True)]
    crossed = sum(got) - sum(correct)
    return sum(correct), Failures(status=wrong[0], length=wrong[1] + crossed)


def read_asked(values: object) -> tuple[int, ...]:
    """Read how many requests of each kind were sent. Raises ValueError for an odd shape."""
    return tuple(as_count(each) for each in as_list(as_object(values).get("asked", [])))


def _round_of(weights: Sequence[float]) -> int:
    """Return the least number of steps in which whole weights come out even, or a thousand."""
    total = sum(weights)
    is_whole = all(float(each).is_integer() for each in weights)
    return int(total) if is_whole and total <= STEPS else STEPS


def _sorts(kinds: Sequence[RequestKind]) -> list[tuple[int, int]]:
    """Return the sorts of correct responses: status and length, or any length where one kind accepts any."""
    is_open = {each.status for each in kinds if each.body_bytes is None}
    found = ((each.status, ANY if each.status in is_open else each.body_bytes or 0) for each in kinds)
    return list(dict.fromkeys(found))


def _sort_of(kind: RequestKind, sorts: Sequence[tuple[int, int]]) -> int:
    """Return the number of the sort that a kind's correct responses are of, from 1 on."""
    wanted = {(kind.status, ANY), (kind.status, kind.body_bytes)}
    return next(number for number, sort in enumerate(sorts, start=1) if sort in wanted)


def _write_tests(kinds: Sequence[RequestKind], sort: tuple[int, int]) -> str:
    """Write the tests of a sort; none where one kind of it takes whatever has its status and length."""
    status, length = sort
    own = (each for each in kinds if each.status == status and length in (ANY, each.body_bytes))
    tests = [", ".join(_write_test(each, has_length=length != ANY)) for each in own]
    return ", ".join(f"{{{each}}}" for each in dict.fromkeys(tests)) if all(tests) else ""


def _write_test(kind: RequestKind, *, has_length: bool) -> Iterator[str]:
    """Yield what a body has to pass; nothing where any is right."""
    if kind.body_bytes is not None and not has_length:
        yield f"length = {kind.body_bytes}"
    if kind.body.least_bytes and kind.body_bytes is None:
        yield f"least = {kind.body.least_bytes}"
    if kind.body.contains:
        yield f"text = {_quote(kind.body.contains)}"
    if kind.body.content is not None:
        yield f"content = {_quote(kind.body.content)}"


def _write_kind(kind: RequestKind, sort: int) -> str:
    # Without a body wrk announces no length, and a server may wait for it (RFC 9110, section 8.6).
    body = '""' if kind.method in {"POST", "PUT", "PATCH"} else "nil"
    asked = f"method = {_quote(kind.method)}, path = {_quote(kind.path)}, body = {body}"
    return f"{{{asked}, headers = {_write_headers(kind.headers)}, sort = {sort}}}"


def _write_headers(headers: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"[{_quote(name)}] = {_quote(value)}" for name, value in headers.items()) + "}"


def _quote(text: str | bytes) -> str:
    """Write a text as Lua reads it: only printable ASCII stands for itself."""
    content = text.encode() if isinstance(text, str) else text
    plain = (chr(byte) if byte in _PLAIN else f"\\{byte:03}" for byte in content)
    return f'"{"".join(plain)}"'
