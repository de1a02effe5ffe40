"""What one load asks of installed services, with the correct responses as they are known now."""

from collections.abc import Sequence
from dataclasses import dataclass

from tuner.deploy.asked import ResolvedLoad
from tuner.deploy.discovery import AskingServices, read_page
from tuner.deploy.pages import Page, Pages
from tuner.deploy.readiness import Manner
from tuner.errors import NotReady, TargetError
from tuner.ports import Host, RequestKind, Server


@dataclass(kw_only=True)
class LearnedLoad:
    """One load of a managed study."""

    ask: AskingServices
    kinds: tuple[RequestKind, ...]
    """What is asked for, as the study says; the first is waited for."""
    mix: int
    """How many of the last of them are the mix that the load sends; 0 for the page alone."""
    pages: tuple[Page, ...]
    """The same with the correct responses, as the original configuration gives them."""
    learner: Pages

    @property
    def url(self) -> str:
        """Return the URL of the page that is waited for."""
        return self.ask.url

    @property
    def manner(self) -> Manner:
        """Return how the load asks."""
        return self.ask.manner

    def learn_again(self) -> bool:
        """Ask for all pages once more; return whether one is another than was known."""
        before, self.pages = self.pages, self.learner.learn(self.kinds, self.ask, is_doubtful=True)
        # One that varies was only asked for more often.
        return [each.kind for each in self.pages] != [each.kind for each in before]

    def asked(self) -> ResolvedLoad:
        """Return what the load asks for, with what is known of the pages now."""

        def ask_again() -> ResolvedLoad:
            # The configuration is the same all along a trial: what is another page now is not its fault.
            self.learn_again()
            return self.asked()

        pages = self.pages[-self.mix :] if self.mix else self.pages
        return ResolvedLoad.of(self.url, pages, is_mix=bool(self.mix), ask_again=ask_again)


def learn_load(
    host: Host,
    url: str,
    manner: Manner,
    kinds: Sequence[RequestKind],
    *,
    mix: int,
    servers: Sequence[Server],
) -> LearnedLoad:
    """Learn what installed servers answer to a load.

    Args:
        host: asks them; the target.
        url: of the page that is waited for, which is the first of `kinds`.
        manner: how the load asks.
        kinds: all that is asked for.
        mix: how many of the last of them are the mix.
        servers: adapters, which know the errors of their pages.

    Raises:
        TargetError: an answer is another than the study says.
    """
    ask = AskingServices(host=host, url=url, manner=manner, servers=servers)
    first = read_page(host, ask.url_of(kinds[0]), manner=manner, kind=kinds[0], servers=servers)
    learner = Pages()
    try:
        pages = learner.learn(kinds, ask, first=first)
    except NotReady as error:
        raise TargetError(f"{host.name}: tuner stopped before any change: {error}") from error
    return LearnedLoad(ask=ask, kinds=tuple(kinds), mix=mix, pages=pages, learner=learner)
