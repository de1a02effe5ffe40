"""Learns what the correct responses to a load are, from several answers to each of its requests."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from tuner.deploy.readiness import Answer, describe_right, is_right
from tuner.errors import NotReady
from tuner.ports import BodyCheck, RequestKind

TIMES = 100
"""A page whose length differs in one answer of twenty shows that in so many with a probability of 99.4 %."""
PATIENCE_S = 1.5
"""For asking all requests of a load that often."""
LEAST_PATIENCE_S = 0.1
TRIES = 2
MOST_VERSIONS = 2
MORE = 4
"""Whole answers that are asked for when a page varies, to see what all have in common."""
UNEVEN_BYTES = 32
"""Headers that differ by more make totals say little about single responses."""
LEAST_MARKER, MOST_MARKER = 8, 64
MOST_BEGINNING = 1000
MOST_CONTENT_BYTES = 1_000_000
"""Of a body that every response is compared with."""
SAFE_METHODS = frozenset({"GET", "OPTIONS"})
PLAIN_TEXT = re.compile(rb"[^0-9\x00-\x1f\x7f-\xff]*")
"""What a marker may consist of: a digit may be part of a time or of a counter."""
LAST_WORD = re.compile(rb"\w*$")
"""Two random texts may begin alike by chance."""


class Asking(Protocol):
    """Asks the servers of a deployment."""

    def once(self, kind: RequestKind) -> Answer:
        """Send one request on a connection of its own, and read the body."""

    def often(self, kind: RequestKind, times: int, seconds: float) -> Sequence[Answer]:
        """Send one request again and again, on one connection where it is kept; bodies are not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One kind of request with what is correct for it, as several answers showed it."""

    kind: RequestKind
    response_bytes: int | None
    """Header and body of a correct response; None where that differs from one to the next."""
    said: str = ""
    """How it is judged, where its length does not tell."""

    def refuse_another(self, answer: Answer, url: str) -> None:
        """Raise NotReady when an answer is not this page."""
        if not is_right(self.kind, answer):
            wanted = describe_right(self.kind)
            raise AnotherPage(f"{url} gave {answer.seen}, where the original configuration gives {wanted}.")


class AnotherPage(NotReady):
    """A page came that is not the one that was learned."""


@dataclass(slots=True, kw_only=True)
class _Seen:
    """What the answers to one kind of request had in common."""

    beginning: bytes
    """Of all bodies."""
    last: bytes | None = None
    bodies: list[int] = field(default_factory=list)
    """Lengths as they came."""
    headers: list[int] = field(default_factory=list)
    differs: bool = False
    """Whether two bodies were not the same."""
    is_chunked: bool = False

    @property
    def varies(self) -> bool:
        """Return whether the page is another one from answer to answer."""
        return self.differs or self.varies_in_length

    @property
    def varies_in_length(self) -> bool:
        return len(set(self.bodies)) > 1

    @property
    def is_even(self) -> bool:
        """Return whether all responses took about as many bytes on the wire."""
        return not self.is_chunked and max(self.headers) - min(self.headers) <= UNEVEN_BYTES

    @property
    def span(self) -> str:
        least, most = min(self.bodies), max(self.bodies)
        return f"{least:,} bytes" if least == most else f"{least:,} to {most:,} bytes"

    def count(self, answer: Answer) -> None:
        """Take in the lengths of an answer."""
        self.bodies.append(answer.body_bytes)
        self.headers.append(answer.response_bytes - answer.body_bytes)
        self.is_chunked |= answer.is_chunked

    def read(self, answer: Answer) -> None:
        """Take in a whole answer."""
        self.count(answer)
        self.differs |= self.last not in {None, answer.body}
        self.last = answer.body
        self.beginning = _begin_alike(self.beginning, answer.body)

    def find_marker(self) -> str:
        """Return text that all answers begin with, as far as it will hardly change; empty for none."""
        found = PLAIN_TEXT.match(self.beginning)
        text = found.group() if found else b""
        if len(text) <= 2 * MOST_MARKER:
            text = LAST_WORD.sub(b"", text)
        return text[:MOST_MARKER].decode() if len(text) >= LEAST_MARKER else ""


@dataclass(slots=True, kw_only=True)
class _Known:
    """What earlier trials showed of one kind of request."""

    beginning: bytes
    versions: set[str] = field(default_factory=set)
    """Checksums of bodies, each of which was taken for the only one at its time."""
    varying: _Seen | None = None
    is_counted: bool = False
    """Whether it was asked for often."""


@dataclass(slots=True)
class Pages:
    """What is known of the pages of a study; one that varied once may vary in each of its trials."""

    _known: dict[tuple[str, str, str], _Known] = field(default_factory=dict)

    def learn(
        self,
        kinds: Sequence[RequestKind],
        ask: Asking,
        *,
        first: Answer | None = None,
        is_doubtful: bool = False,
    ) -> tuple[Page, ...]:
        """Return the kinds of requests with what is correct for each.

        Args:
            kinds: as the study has them.
            ask: how the servers are asked.
            first: the answer to the first of them, where it is known.
            is_doubtful: whether they are asked for often although they have been before.

        Raises:
            NotReady: names the first request that is answered otherwise than the study says.
        """
        for known in self._known.values() if is_doubtful else ():
            known.is_counted = False
        seconds = max(LEAST_PATIENCE_S, PATIENCE_S / len(kinds))
        return tuple(
            self._learn(kind, ask, seconds, first if index == 0 else None) for index, kind in enumerate(kinds)
        )

    def _learn(self, kind: RequestKind, ask: Asking, seconds: float, first: Answer | None) -> Page:
        first = _check(kind, first or ask.once(kind))
        check = kind.body.check
        if check in {BodyCheck.ANY, BodyCheck.CONTAINS}:
            return _take_varying(replace(kind, body=replace(kind.body, varies=True)))
        if check is BodyCheck.CHECKSUM:
            return _compare(kind, first, _ask_again(kind, ask))
        if kind.body_bytes is not None:
            return Page(kind=kind, response_bytes=first.response_bytes)
        seen = self._look(kind, ask, seconds, first)
        if check is BodyCheck.LENGTH and seen.varies_in_length:
            raise NotReady(
                f"load.body: {kind.path} answers with {seen.span}, so the length varies. Leave `body: "
                "length` out, or write `body: any`."
            )
        if seen.varies and check is BodyCheck.LEARNED:
            return _describe_varying(kind, seen, is_packed=first.body_bytes != len(first.body))
        known = replace(kind, body_bytes=first.body_bytes)
        if not seen.is_even:
            return Page(kind=replace(known, body=replace(kind.body, varies=True)), response_bytes=None)
        return Page(kind=known, response_bytes=first.response_bytes)

    def _look(self, kind: RequestKind, ask: Asking, seconds: float, first: Answer) -> _Seen:
        """Ask for a page until it is known whether it varies."""
        key = (kind.method, kind.path, str(kind.headers))
        known = self._known.setdefault(key, _Known(beginning=first.body))
        seen = known.varying or _Seen(beginning=_begin_alike(known.beginning, first.body))
        known.beginning = seen.beginning
        known.versions.add(hashlib.sha256(first.body).hexdigest())
        seen.read(first)
        seen.read(_ask_again(kind, ask))
        is_new, known.is_counted = not known.is_counted, True
        if is_new and not seen.varies and kind.method in SAFE_METHODS:
            for answer in ask.often(kind, TIMES, seconds):
                if answer.status == kind.status:
                    seen.count(answer)
        # What changed twice is no longer taken for a page that somebody replaced.
        seen.differs |= len(known.versions) > MOST_VERSIONS
        if seen.varies and (is_new or known.varying is None):
            known.varying = seen
            for _ in range(MORE):
                seen.read(_ask_again(kind, ask))
        return seen


def _describe_varying(kind: RequestKind, seen: _Seen, *, is_packed: bool) -> Page:
    """Return a page that is judged by its status and by what all answers have in common."""
    marker = "" if is_packed else seen.find_marker()
    body = replace(kind.body, varies=True, least_bytes=min(1, *seen.bodies), contains=marker)
    page = _take_varying(replace(kind, body=body), f" varies, {seen.span} in {len(seen.bodies)} answers")
    return replace(page, said=f"{page.said}, for load generators that read bodies") if marker else page


def _take_varying(kind: RequestKind, found: str = "") -> Page:
    said = f"{kind.path}{found}: a correct response is {describe_right(kind)}"
    return Page(kind=kind, response_bytes=None, said=said)


def _compare(kind: RequestKind, first: Answer, second: Answer) -> Page:
    """Return a page of which every body is compared with the first."""
    if first.body != second.body:
        raise NotReady(
            f"load.body: {kind.path} answers with two different bodies, so no checksum fits both. Write "
            "`body: any`, or `body: {contains: TEXT}`."
        )
    if len(first.body) > MOST_CONTENT_BYTES:
        raise NotReady(
            f"load.body: {kind.path} has {len(first.body):,} bytes, and checksums need "
            f"{MOST_CONTENT_BYTES:,} or fewer. Write `body: length`."
        )
    body = replace(kind.body, content=first.body, varies=True)
    return _take_varying(replace(kind, body_bytes=first.body_bytes, body=body))


def _begin_alike(first: bytes, second: bytes) -> bytes:
    """Return what two bodies begin with alike, as far as a marker may be taken from it."""
    first, second = first[:MOST_BEGINNING], second[:MOST_BEGINNING]
    pairs = enumerate(zip(first, second, strict=False))
    return first[: next((index for index, (one, other) in pairs if one != other), len(second))]


def _ask_again(kind: RequestKind, ask: Asking) -> Answer:
    """Return another right answer; one that fails now and then is no reason to begin with nothing."""
    answers = (ask.once(kind) for _ in range(TRIES))
    return next((each for each in answers if is_right(kind, each)), None) or _check(kind, ask.once(kind))


def _check(kind: RequestKind, answer: Answer) -> Answer:
    """Return an answer that is what the study says. Raises NotReady for another."""
    asked = f"load.requests: {kind.method} {kind.path} gave"
    if not is_right(kind, answer):
        leads = f", to {answer.location}" if answer.location else ""
        raise NotReady(
            f"{asked} {answer.seen}{leads}, where {describe_right(kind)} was expected: {answer.said!r}. "
            "Correct the request, its `status:`, `bytes:` or `body:`."
        )
    checksum = hashlib.sha256(answer.body).hexdigest()
    if kind.sha256 not in {"", checksum}:
        raise NotReady(
            f"{asked} a body with the SHA-256 {checksum}, where {kind.sha256} was expected: {answer.said!r}. "
            "Correct the request, or its `sha256:`."
        )
    return answer
