"""Asks once for each request of a mix, and learns what the correct response is."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from tuner.deploy.readiness import Answer
from tuner.errors import NotReady
from tuner.ports import RequestKind

Ask = Callable[[RequestKind], Answer]


def origin_of(url: str) -> str:
    """Return the part of a URL before its path."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def learn_mix(ask: Ask, kinds: Sequence[RequestKind]) -> tuple[RequestKind, ...]:
    """Return the mix with the length of each correct response, unless it differs from one to the next.

    Raises NotReady naming the first request that is answered otherwise than the study says.
    """
    return tuple(_learn(kind, ask) for kind in kinds)


def _learn(kind: RequestKind, ask: Ask) -> RequestKind:
    if kind.body_bytes is not None:
        _check(kind, ask(kind))
        return kind
    first, second = (_check(kind, ask(kind)) for _ in range(2))
    return replace(kind, body_bytes=first.body_bytes if first.body_bytes == second.body_bytes else None)


def _check(kind: RequestKind, answer: Answer) -> Answer:
    """Return an answer that is what the study says. Raises NotReady for another."""
    came = f"{answer.status} with {answer.body_bytes} bytes" if answer.status else answer.missing
    wanted = f"{kind.status}" if kind.body_bytes is None else f"{kind.status} with {kind.body_bytes} bytes"
    if answer.status != kind.status or kind.body_bytes not in {None, answer.body_bytes}:
        raise NotReady(
            f"load.requests: {kind.method} {kind.path} gave {came}, where {wanted} was expected: "
            f"{answer.said!r}. Correct the request, its `status:` or its `bytes:`."
        )
    checksum = hashlib.sha256(answer.body).hexdigest()
    if kind.sha256 not in {"", checksum}:
        raise NotReady(
            f"load.requests: {kind.method} {kind.path} gave a body with the SHA-256 {checksum}, where "
            f"{kind.sha256} was expected: {answer.said!r}. Correct the request, or its `sha256:`."
        )
    return answer
