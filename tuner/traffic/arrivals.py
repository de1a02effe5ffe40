"""Counts when requests came: the rate of the busiest minute, bursts, kept connections, requests under way."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tuner.kit.access_log import read_second
from tuner.ports import LogField
from tuner.traffic.reading import Columns, RowReader

MINUTE_S = 60
MOST_MINUTES = 4096
"""Of which each second is kept; of less busy ones only the total, when there are more."""
MOST_CONNECTIONS = 65_536
"""Whose last request is kept to know how long they were idle."""
MOST_IDLE_S = 300
"""A client that asks after that long has opened another connection, maybe from the same port."""
NOT_USED = frozenset({"", "-", "off", "http"})
"""Values of variables for requests without TLS, or without compression."""
HTTP2 = ("HTTP/2", "h2")
PROTOCOL_LETTERS = len("HTTP/1.1")
LONGEST = 1e12
"""Of a duration, in whatever unit: what is longer is no duration."""


@dataclass(slots=True, kw_only=True)
class _Minute:
    seconds: list[int] = field(default_factory=lambda: [0] * MINUTE_S)
    requests: int = 0
    taken_s: float = 0.0
    """How long the server took for all of them."""


@dataclass(slots=True, kw_only=True)
class Share:
    """How many requests had something, of those of which it is known."""

    of: int = 0
    had: int = 0

    @property
    def value(self) -> float | None:
        return self.had / self.of if self.of else None

    def add(self, counts: Counter[bool]) -> None:
        """Count some more."""
        self.of += counts.total()
        self.had += counts[True]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """When requests came; None for what the log does not say."""

    peak_rps: float | None
    """Requests per second in the busiest minute."""
    peak_at: str
    dispersion: float | None
    """Variance of the counts of its seconds over their mean: 1 for arrivals that are independent."""
    under_way: float | None
    """Requests at once in that minute, by Little's law: rate × time that each takes."""
    per_connection: float | None
    """Requests."""
    idle_s: float | None
    """Median seconds between two requests of one connection."""
    tls: float | None
    http2: float | None
    gzip: float | None


@dataclass(slots=True, kw_only=True)
class ArrivalCounter:
    """Counts when requests came, in bounded memory."""

    minutes: dict[int, _Minute] = field(default_factory=dict)
    timed: bool = False
    tls: Share = field(default_factory=Share)
    http2: Share = field(default_factory=Share)
    gzip: Share = field(default_factory=Share)
    numbered: int = 0
    opened: int = 0
    """Of the requests with a number, or with the name of a connection, those that were its first."""
    last_s: dict[str, int] = field(default_factory=dict)
    """Connection → second of its last request."""
    idle: Counter[int] = field(default_factory=Counter)

    def add(self, columns: Columns, reader: RowReader) -> None:
        """Count the requests of some lines."""
        self._count_times(columns, reader)
        self._count_shares(columns)
        serials = columns.get(LogField.SERIAL)
        if serials is not None:
            self.numbered += len(serials)
            self.opened += serials.count(str(reader.first_serial))
        if LogField.CONNECTION in columns and LogField.TIME in columns:
            self._count_connections(columns, is_numbered=serials is not None)

    def _count_times(self, columns: Columns, reader: RowReader) -> None:
        times = columns.get(LogField.TIME)
        if times is None:
            return
        fresh = set()
        for text, count in Counter(times).items():
            second = read_second(text)
            if second is not None:
                minute, place = divmod(second, MINUTE_S)
                found = self.minutes.setdefault(minute, _Minute())
                found.seconds[place] += count
                found.requests += count
                fresh.add(minute)
        durations = columns.get(LogField.DURATION)
        if durations is not None:
            self._count_durations(times, durations, reader.unit_s)
        if len(self.minutes) > MOST_MINUTES:
            self._forget_minutes(fresh)

    def _count_durations(self, times: Sequence[str], durations: Sequence[str], unit_s: float) -> None:
        self.timed = True
        taken: dict[str, float] = {}
        for text, duration in zip(times, durations, strict=True):
            taken[text] = taken.get(text, 0.0) + _read_number(duration)
        for text, number in taken.items():
            second = read_second(text)
            if second is not None:
                self.minutes[second // MINUTE_S].taken_s += number * unit_s

    def _forget_minutes(self, fresh: set[int]) -> None:
        """Keep the busiest half, and those that may still go on."""
        busiest = sorted(self.minutes, key=lambda each: -self.minutes[each].requests)[: MOST_MINUTES // 2]
        newest = sorted(fresh)[-MOST_MINUTES // 4 :]
        self.minutes = {each: self.minutes[each] for each in sorted({*busiest, *newest})}

    def _count_shares(self, columns: Columns) -> None:
        for name, share in ((LogField.TLS, self.tls), (LogField.ENCODING, self.gzip)):
            if name in columns:
                share.add(_count_values(columns[name]))
        protocols = columns.get(LogField.PROTOCOL)
        if protocols is None and LogField.REQUEST in columns:
            protocols = [each[-PROTOCOL_LETTERS:] for each in columns[LogField.REQUEST]]
        if protocols is not None:
            counts: Counter[bool] = Counter()
            for each, count in Counter(protocols).items():
                counts[any(name in each for name in HTTP2)] += count
            self.http2.add(counts)

    def _count_connections(self, columns: Columns, *, is_numbered: bool) -> None:
        last_s, times = self.last_s, columns[LogField.TIME]
        seconds = {text: read_second(text) for text in {*times}}
        for name, text in zip(columns[LogField.CONNECTION], times, strict=True):
            second = seconds[text]
            if second is None:
                continue
            before = last_s.pop(name, None)
            last_s[name] = second
            is_new = before is None or not 0 <= second - before <= MOST_IDLE_S
            if not is_new and before is not None:
                self.idle[second - before] += 1
            if not is_numbered:
                self.numbered += 1
                self.opened += is_new
        if len(last_s) > 2 * MOST_CONNECTIONS:  # those that were used last are at the end
            self.last_s = dict(list(last_s.items())[-MOST_CONNECTIONS:])

    def summary(self) -> Arrivals:
        """Return what was found."""
        peak, minute = max(
            self.minutes.items(), key=lambda each: (each[1].requests, -each[0]), default=(0, _Minute())
        )
        first, end = self._span(peak)
        counts = minute.seconds[first:end]
        mean = sum(counts) / len(counts) if minute.requests else 0.0
        deviations = sum((each - mean) ** 2 for each in counts)
        return Arrivals(
            peak_rps=mean or None,
            peak_at=time.strftime("%Y-%m-%d %H:%M", time.gmtime(peak * MINUTE_S)) if mean else "",
            dispersion=deviations / (len(counts) - 1) / mean if mean and len(counts) > 1 else None,
            under_way=minute.taken_s / len(counts) if self.timed and mean else None,
            per_connection=self.numbered / self.opened if self.opened else None,
            idle_s=_median(self.idle),
            tls=self.tls.value, http2=self.http2.value, gzip=self.gzip.value,
        )  # fmt: skip

    def _span(self, peak: int) -> tuple[int, int]:
        """Return which seconds of the busiest minute the log covers: all, unless it begins or ends in it."""
        if not self.minutes:
            return 0, MINUTE_S
        used = [place for place, count in enumerate(self.minutes[peak].seconds) if count]
        first = used[0] if peak == min(self.minutes) else 0
        end = used[-1] + 1 if peak == max(self.minutes) else MINUTE_S
        return first, end


def _read_number(text: str) -> float:
    """Return a duration; 0 for none. A request that was broken off may have a negative one."""
    try:
        number = float(text)
    except ValueError:
        return 0.0
    return number if 0 < number < LONGEST else 0.0


def _count_values(values: Sequence[str]) -> Counter[bool]:
    counts: Counter[bool] = Counter()
    for value, count in Counter(values).items():
        counts[value not in NOT_USED] += count
    return counts


def _median(counts: Counter[int]) -> float | None:
    """Return the median of counted numbers; None where there are none."""
    left = counts.total() / 2
    for value in sorted(counts):
        left -= counts[value]
        if left <= 0:
            return float(value)
    return None
