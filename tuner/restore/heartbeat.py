"""The heartbeat that renews a lease."""

import threading
import time
from collections.abc import Callable


class Heartbeat:
    """A thread that delivers increasing numbers, and records when that worked last."""

    def __init__(self, deliver: Callable[[int], None], *, every_s: float) -> None:
        """Prepare a thread that calls `deliver`, which may raise, every so many seconds."""
        self._deliver = deliver
        self._every_s = every_s
        self._ended = threading.Event()
        self._delivered_s = time.monotonic()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    @property
    def silent_s(self) -> float:
        """Seconds since the last number arrived."""
        return time.monotonic() - self._delivered_s

    @property
    def error(self) -> Exception | None:
        """Why the last one did not arrive."""
        return self._error

    def start(self) -> None:
        """Start the thread."""
        self._delivered_s = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread after the number that is on its way."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _beat(self) -> None:
        number = 0
        while not self._ended.wait(self._every_s):
            number += 1
            began_s = time.monotonic()
            try:
                self._deliver(number)
            except Exception as error:  # noqa: BLE001 - the beat goes on, or a healthy run would be taken back
                self._error = error
            else:
                # From when it was sent: the target has counted since then at the earliest.
                self._delivered_s, self._error = began_s, None
