"""The settings of h2o 2.2 that stand at the top of its configuration, and how their values are written.

Read from lib/core/configurator.c and src/main.c of v2.2.5, where a number is what scanf takes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tuner.errors import ConfigRejected
from tuner.kit.values import require_whole
from tuner.ports import Facts, Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeNumber:
    """A whole number."""

    otherwise: int | None
    """What h2o takes when it is not given; None for one per CPU."""
    least: int = 0

    def default(self, facts: Facts) -> Scalar:
        return facts.cores if self.otherwise is None else self.otherwise

    def read(self, word: str) -> Scalar | None:
        return int(word) if word.isascii() and word.isdigit() else None

    def write(self, name: str, value: Scalar) -> str:
        return str(require_whole("h2o", name, value, least=self.least))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A part of something, above 0."""

    otherwise: float

    def default(self, facts: Facts) -> Scalar:
        return self.otherwise

    def read(self, word: str) -> Scalar | None:
        try:
            return float(word)
        except ValueError:
            return None

    def write(self, name: str, value: Scalar) -> str:
        if not isinstance(value, float) or not 0 < value <= 1:
            raise ConfigRejected(f"h2o: {name}: {str(value)[:80]!r} is no number above 0 and up to 1.")
        return repr(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """ON or OFF."""

    otherwise: bool

    def default(self, facts: Facts) -> Scalar:
        return self.otherwise

    def read(self, word: str) -> Scalar | None:
        return {"ON": True, "OFF": False}.get(word.upper())

    def write(self, name: str, value: Scalar) -> str:
        if not isinstance(value, bool):
            raise ConfigRejected(f"h2o: {name}: {str(value)[:80]!r} is neither on nor off.")
        return "ON" if value else "OFF"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """A word in a mapping of its own, as `{mode: all}`; a mapping that says more is left alone."""

    otherwise: str
    words: tuple[str, ...]

    def default(self, facts: Facts) -> Scalar:
        return self.otherwise

    def read(self, word: str) -> Scalar | None:
        mode = word.removeprefix("{mode: ").removesuffix("}").lower()  # ssl.c compares it with strcasecmp()
        return mode if mode in self.words and word.startswith("{mode: ") else None

    def write(self, name: str, value: Scalar) -> str:
        if value not in self.words:
            raise ConfigRejected(
                f"h2o: {name}: {str(value)[:80]!r} is none of {', '.join(self.words)}. Correct the search "
                "space."
            )
        return f"{{mode: {value}}}"


Setting = WholeNumber | Ratio | Switch | Mode

SETTINGS: Mapping[str, Setting] = {
    # 0 threads are refused; 0 connections pass the check, and then nobody accepts.
    "num-threads": WholeNumber(otherwise=None, least=1),
    "max-connections": WholeNumber(otherwise=1024, least=1),
    "tcp-fastopen": WholeNumber(otherwise=4096),
    "handshake-timeout": WholeNumber(otherwise=10, least=1),
    "http1-request-timeout": WholeNumber(otherwise=10, least=1),
    "http1-upgrade-to-http2": Switch(otherwise=True),
    "http2-idle-timeout": WholeNumber(otherwise=10, least=1),
    "http2-max-concurrent-requests-per-connection": WholeNumber(otherwise=100, least=1),
    "http2-latency-optimization-min-rtt": WholeNumber(otherwise=50),
    "http2-latency-optimization-max-additional-delay": Ratio(otherwise=0.1),
    "http2-latency-optimization-max-cwnd": WholeNumber(otherwise=65535),
    "http2-reprioritize-blocking-assets": Switch(otherwise=True),
    "ssl-session-resumption": Mode(otherwise="all", words=("off", "cache", "ticket", "all")),
    "limit-request-body": WholeNumber(otherwise=2**30),
    "max-delegations": WholeNumber(otherwise=5),
    "file.etag": Switch(otherwise=True),
    "file.send-compressed": Switch(otherwise=False),
    "proxy.timeout.io": WholeNumber(otherwise=30_000, least=1),
    "proxy.timeout.keepalive": WholeNumber(otherwise=2000),
}
