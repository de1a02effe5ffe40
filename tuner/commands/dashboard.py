"""Optuna's dashboard on a study, for this machine's own browsers, and to look at only.

Other users of this machine reach its port. It answers only who opened the address that is printed: the key in
that address becomes a cookie.

The dashboard gets a copy of the study (`tuner.export.optuna_view`), made again when the study has new trials.
It offers to delete a study or to add a trial: that cannot reach the storage, and is refused.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable
from hmac import compare_digest
from http import HTTPStatus
from secrets import token_urlsafe
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from tuner.commands.session import read
from tuner.errors import TargetError
from tuner.export.optuna_view import copy_as_optuna, weigh_settings
from tuner.kit.packages import say_extra
from tuner.study import Study

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

HERE = "127.0.0.1"
PAGE = "/dashboard/studies/0"
"""The copy has one study, whose number is 0."""
IMPORTANCES = "/api/studies/0/param_importances"
KEY = "key"
FRESH_S = 2.0
"""A copy is not made again before this has passed."""
LOOKS = {"GET", "HEAD"}
NAMES = {HERE, "localhost"}
Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Dashboard:
    """The dashboard's application, around a copy of the study that is renewed as the study proceeds."""

    def __init__(self, settings: Study) -> None:
        """Read the study once. Raises what `read` does, and TargetError without the package."""
        self._settings = settings
        self._lock = threading.Lock()
        self._ended: object = None
        self._looked_s = 0.0
        self._is_running = True
        self._key = token_urlsafe(24)
        self._application = self._renew()

    @property
    def page(self) -> str:
        """Return the path of the study's page, with the key."""
        return f"{PAGE}?{KEY}={self._key}"

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request."""
        if environ["REQUEST_METHOD"] not in LOOKS:
            return _refuse(
                start_response,
                HTTPStatus.METHOD_NOT_ALLOWED,
                "This page is read-only. Use the commands of tuner to change a study.",
            )
        # A page of somebody else's whose name suddenly means this machine would read the study otherwise.
        if environ.get("HTTP_HOST", "").rpartition(":")[0] not in NAMES:
            return _refuse(start_response, HTTPStatus.FORBIDDEN, f"Open http://{HERE} instead.")
        asked, cookie = environ.get("QUERY_STRING", ""), environ.get("HTTP_COOKIE", "")
        if self._knows_key(parse_qs(asked).get(KEY, [""])[0]):
            # Browsers share cookies among the ports of a machine: each dashboard has its own.
            kept = f"tuner-{self._key[:8]}={self._key}; Path=/; HttpOnly; SameSite=Strict"
            start_response("303 See Other", [("Location", PAGE), ("Set-Cookie", kept)])
            return []
        if not any(self._knows_key(each.partition("=")[2].strip()) for each in cookie.split(";")):
            return _refuse(
                start_response, HTTPStatus.FORBIDDEN, "Open the address that `tuner dashboard` printed."
            )
        answer = self._renew()
        if environ.get("PATH_INFO") == IMPORTANCES:
            return _answer(start_response, json.dumps(self._weigh()).encode())
        return answer(environ, start_response)

    def _weigh(self) -> dict[str, Any]:
        """Return the importances; none while the study runs, whose trials would lose processor time."""
        return weigh_settings(read(self._settings, with_explanation=not self._is_running).summary)

    def _knows_key(self, given: str) -> bool:
        return compare_digest(given.encode(errors="replace"), self._key.encode())

    def _renew(self) -> Application:
        """Return the application for the study as it stands."""
        with self._lock:
            if time.monotonic() - self._looked_s >= FRESH_S or not self._looked_s:
                summary = read(self._settings, with_explanation=False).summary
                ended = [(trial.number, trial.state, len(trial.windows)) for trial in summary.trials]
                if ended != self._ended or summary.state != "running":
                    self._application = _make_application(copy_as_optuna(summary, self._settings.constraints))
                self._ended, self._looked_s = ended, time.monotonic()
                self._is_running = summary.state == "running"
            return self._application


def _make_application(storage: "BaseStorage") -> Application:
    try:
        import optuna_dashboard
    except ImportError as error:
        raise TargetError(
            f"optuna-dashboard is not installed. Install this package: {say_extra('dashboard')}"
        ) from error
    application: Application = optuna_dashboard.wsgi(storage)
    return application


def _answer(start_response: Callable[..., Any], text: bytes) -> list[bytes]:
    start_response("200 OK", [("Content-Type", "application/json")])
    return [text]


def _refuse(start_response: Callable[..., Any], status: HTTPStatus, text: str) -> list[bytes]:
    start_response(f"{status.value} {status.phrase}", [("Content-Type", "text/plain; charset=utf-8")])
    return [f"{text}\n".encode()]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing of each request."""


def open_dashboard(settings: Study, port: int) -> tuple[WSGIServer, str]:
    """Return a server that listens on this machine alone, and the address of its page.

    Raises:
        UsageError: the study is wrong, or has not begun.
        TargetError: the dashboard is not installed, or the port is taken.
    """
    dashboard = Dashboard(settings)
    try:
        server = make_server(HERE, port, dashboard, server_class=_Server, handler_class=_Handler)
    except OSError as error:
        raise TargetError(
            f"--port: tuner cannot listen on {HERE}:{port}: {error.strerror}. Give another port."
        ) from error
    return server, f"http://{HERE}:{server.server_port}{dashboard.page}"
