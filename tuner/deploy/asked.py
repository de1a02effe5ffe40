"""What each of several loads asks of the servers of one study."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tuner.deploy.pages import Page
from tuner.deploy.readiness import INDEX, Manner, describe_right
from tuner.ports import ANY_BODY, Body, RequestKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedLoad:
    """What a load will ask for, as far as that is known before any trial."""

    page: RequestKind = INDEX
    """What is asked for; of a mix, what is waited for."""
    manner: Manner = field(default_factory=lambda: Manner(keepalive=True))
    """How it asks."""
    requests: tuple[RequestKind, ...] = ()
    """The mix; empty for the page alone."""

    @property
    def kinds(self) -> tuple[RequestKind, ...]:
        """Return all that is asked for."""
        return self.requests or (self.page,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedLoad:
    """What a load asks of a deployment, with the correct responses of this trial."""

    url: str
    """What is requested."""
    body_bytes: int | None
    """Length of the correct body; None when it differs from response to response."""
    response_bytes: int | None
    """Header and body of one correct response of this trial; None like `body_bytes`."""
    body: Body = ANY_BODY
    requests: tuple[RequestKind, ...] = ()
    """The mix of the load; empty for the URL alone."""
    judged: tuple[str, ...] = ()
    """A sentence for each request whose correct response is not known by its length."""
    ask_again: Callable[[], "ResolvedLoad"] | None = field(default=None, compare=False, repr=False)
    """Learns the same once more."""

    @property
    def expected(self) -> str:
        """Return which answer is right, in words."""
        if self.requests:
            return "the correct response of each of `requests:`"
        return describe_right(RequestKind(path="/", body_bytes=self.body_bytes, body=self.body))

    def is_answered_as(self, other: "ResolvedLoad") -> bool:
        """Return whether the correct responses are the same."""
        return (self.body_bytes, self.body, self.requests) == (other.body_bytes, other.body, other.requests)

    @classmethod
    def of(
        cls,
        url: str,
        pages: Sequence[Page],
        *,
        is_mix: bool,
        ask_again: Callable[[], "ResolvedLoad"] | None = None,
    ) -> "ResolvedLoad":
        """Return what is asked for, of pages that were learned."""
        first = pages[0]
        return cls(
            url=url, body_bytes=first.kind.body_bytes, response_bytes=first.response_bytes,
            body=first.kind.body, requests=tuple(each.kind for each in pages) if is_mix else (),
            judged=tuple(each.said for each in pages if each.said), ask_again=ask_again,
        )  # fmt: skip
