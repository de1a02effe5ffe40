"""Chromium without a window, spoken to over a pipe in the DevTools protocol.

https://chromedevtools.github.io/devtools-protocol/: JSON messages that end in a zero byte.
"""

import base64
import json
import os
import re
import selectors
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

CHROMIUM = "/usr/bin/chromium"
DEADLINE_S = 60.0
ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--remote-debugging-pipe", "about:blank",
)  # fmt: skip
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowRight": 39}
TYPED = {"Enter": "\r", " ": " "}
# Its look at style sheets would be a request, which a browser refuses to pages that are opened as files.
VIOLATIONS = """
axe.run({preload: false, runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}).then(
  (found) => found.violations.flatMap((each) => each.nodes.map((node) => `${each.id}: ${node.target}`)))
"""


class Page:
    """One page: what it complained about and asked for, and what its scripts answer."""

    def __init__(self, read_end: int, write_end: int) -> None:
        self._read_end, self._write_end = read_end, write_end
        self._selector = selectors.DefaultSelector()
        self._selector.register(read_end, selectors.EVENT_READ)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._is_loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def open(self, path: Path, *, width: int, height: int = 900) -> None:
        """Open a file in a window of this size, and wait until it has loaded."""
        self.go(path.resolve().as_uri(), width=width, height=height)

    def go(self, url: str, *, width: int, height: int = 900) -> None:
        """Open an address in the same way."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        self.complaints.clear()
        self.requests.clear()
        self._is_loaded = False
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + DEADLINE_S
        while not self._is_loaded:
            self._note(self._receive(deadline))

    def evaluate(self, expression: str) -> Any:
        """Evaluate a script in the page; promises are waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def prefer(self, theme: str) -> None:
        """Let the system prefer a theme, light or dark."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    def press(self, key: str) -> None:
        """Press and release a key."""
        given = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": KEYS[key]}
        text = {"text": TYPED[key]} if key in TYPED else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **given, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **given)

    def violations(self) -> list[str]:
        """Return what axe finds against WCAG 2.1 A and AA in the page as it is."""
        self.evaluate(f"{(files('axe_core_python') / 'axe.min.js').read_text()}; 0")
        found: list[str] = self.evaluate(VIOLATIONS)
        return found

    def count_sheets(self) -> int:
        """Return on how many A4 sheets the page prints."""
        document = self.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"]
        return len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(document)))

    def photograph(self, path: Path) -> None:
        """Save what the window shows of the page as PNG."""
        picture = self.call("Page.captureScreenshot")["data"]
        path.write_bytes(base64.b64decode(picture))

    def call(self, method: str, **parameters: object) -> Any:
        """Call a method and return its result."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write_end, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + DEADLINE_S
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self._note(answer)

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            assert self._selector.select(max(0.0, deadline - time.monotonic())), "Chromium does not answer"
            data = os.read(self._read_end, 1 << 20)
            assert data, "Chromium ended"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        parameters = event.get("params", {})
        match event.get("method"):
            case "Page.loadEventFired":
                self._is_loaded = True
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(parameters["exceptionDetails"])[:500])
            case "Runtime.consoleAPICalled" if parameters["type"] in {"error", "warning", "assert"}:
                self.complaints.append(json.dumps(parameters["args"])[:500])
            case "Log.entryAdded" if parameters["entry"]["level"] in {"error", "warning"}:
                self.complaints.append(json.dumps(parameters["entry"])[:500])
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"][:200])


@contextmanager
def open_browser(profile: Path) -> Iterator[Page]:
    """Start Chromium with an empty profile; it and all its processes end with the block."""
    to_read, to_write = os.pipe(), os.pipe()
    devnull = os.open(os.devnull, os.O_RDWR)
    identity = os.posix_spawn(
        CHROMIUM,
        [CHROMIUM, f"--user-data-dir={profile}", *ARGUMENTS],
        os.environ,
        file_actions=[
            # First out of the way: the pipes' own numbers may be 3 and 4.
            (os.POSIX_SPAWN_DUP2, to_write[0], 103),
            (os.POSIX_SPAWN_DUP2, to_read[1], 104),
            (os.POSIX_SPAWN_DUP2, 103, 3),
            (os.POSIX_SPAWN_DUP2, 104, 4),
            (os.POSIX_SPAWN_DUP2, devnull, 1),
            (os.POSIX_SPAWN_DUP2, devnull, 2),
        ],
        setpgroup=0,
    )
    os.close(to_write[0])
    os.close(to_read[1])
    try:
        yield Page(to_read[0], to_write[1])
    finally:
        os.killpg(identity, signal.SIGKILL)
        os.waitpid(identity, 0)
        for descriptor in (to_read[0], to_write[1], devnull):
            os.close(descriptor)
