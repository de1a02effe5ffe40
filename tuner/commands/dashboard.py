"""Optuna's dashboard on a study, for this machine's own browsers, and to look at only.

It gets a copy of the study (`tuner.export.optuna_view`), which is made again when the study has gone on: what
the dashboard offers besides looking (deleting a study, adding a trial) cannot reach the storage, and is
refused.
"""

import threading
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from tuner.commands.session import read
from tuner.errors import TargetError
from tuner.export.optuna_view import copy_as_optuna
from tuner.study import Study

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

HERE = "127.0.0.1"
PAGE = "/dashboard/studies/0"
"""The copy has one study, whose number is 0."""
FRESH_S = 2.0
"""A copy is not made again before this has passed."""
LOOKS = {"GET", "HEAD"}
NAMES = {HERE, "localhost"}
Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Dashboard:
    """The dashboard's application, around a copy of the study that is renewed as the study goes on."""

    def __init__(self, settings: Study) -> None:
        """Read the study once. Raises what `read` does, and TargetError without the package."""
        self._settings = settings
        self._lock = threading.Lock()
        self._ended: object = None
        self._looked_s = 0.0
        self._application = self._renew()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request."""
        if environ["REQUEST_METHOD"] not in LOOKS:
            return _refuse(
                start_response, HTTPStatus.METHOD_NOT_ALLOWED, "A study is changed by tuner alone."
            )
        # A page of somebody else's whose name suddenly means this machine would read the study otherwise.
        if environ.get("HTTP_HOST", "").rpartition(":")[0] not in NAMES:
            return _refuse(start_response, HTTPStatus.FORBIDDEN, f"Ask for http://{HERE}.")
        return self._renew()(environ, start_response)

    def _renew(self) -> Application:
        """Return the application for the study as it stands."""
        with self._lock:
            if time.monotonic() - self._looked_s >= FRESH_S or not self._looked_s:
                summary = read(self._settings, with_explanation=False).summary
                ended = [(start.number, start.state, len(start.windows)) for start in summary.starts]
                if ended != self._ended or summary.state != "running":
                    self._application = _make_application(copy_as_optuna(summary, self._settings.constraints))
                self._ended, self._looked_s = ended, time.monotonic()
            return self._application


def _make_application(storage: "BaseStorage") -> Application:
    try:
        import optuna_dashboard
    except ImportError as error:
        raise TargetError(
            "optuna-dashboard is not installed. Install it: pip install 'servertuner[dashboard]'"
        ) from error
    application: Application = optuna_dashboard.wsgi(storage)
    return application


def _refuse(start_response: Callable[..., Any], status: HTTPStatus, text: str) -> list[bytes]:
    start_response(f"{status.value} {status.phrase}", [("Content-Type", "text/plain; charset=utf-8")])
    return [f"{text}\n".encode()]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing of each request."""


def open_dashboard(settings: Study, port: int) -> WSGIServer:
    """Return a server that listens on this machine alone; `serve_forever` answers.

    Raises:
        UsageError: the study is wrong, or has not begun.
        TargetError: the dashboard is not installed, or the port is taken.
    """
    dashboard = Dashboard(settings)
    try:
        return make_server(HERE, port, dashboard, server_class=_Server, handler_class=_Handler)
    except OSError as error:
        raise TargetError(
            f"--port: {HERE}:{port} cannot be listened on: {error.strerror}. Give another."
        ) from error
