"""Serve the metrics, the survey and the group pages of a watcher over HTTP."""

import base64
import hmac
import json
import socket
import ssl
import sys
from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from threading import Semaphore, Timer
from typing import Any
from urllib.parse import quote, unquote

import prometheus_client

from kassay.experiments.planning import render_surveys
from kassay.experiments.plotting.page_templates import environment
from kassay.experiments.watch.event_database import Store
from kassay.experiments.watch.watcher import UNCOUNTED, Watcher
from kassay.reference.model.errors import KassayError

_TEMPLATES = Path(__file__).parent / "templates"
_MAX_REQUESTS = 32
"""Maximum number of requests at the same time; further connections are closed."""
_SECONDS_PER_REQUEST = 10.0
"""Time in which a client must send its request, and receive the answer."""
_HEADERS = {
    "Refresh": "60",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}
_HTML, _TEXT, _JSON = "text/html; charset=utf-8", "text/plain; charset=utf-8", "application/json"


class Pages:
    """Pages of the HTTP server of a watcher.

    ``/`` is the survey, ``/groups/ID`` the page of a group, and ``/plans/ID`` the plan of a group.
    ``/metrics`` is for Prometheus, ``/survey.json`` and ``/events.json`` are for programs.
    """

    def __init__(self, watcher: Watcher, store: Store, *, source: str) -> None:
        self._watcher, self._store, self._source = watcher, store, source
        self._registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=self._registry)

    def find(self, path: str) -> tuple[str, str] | None:
        """Return the content type and the text of a page, or None if there is no such page."""
        if path == "/metrics":
            process = prometheus_client.generate_latest(self._registry).decode()
            rows = self._watcher.results().metric_rows()
            up, read = float(self._watcher.problem is None), self._watcher.observed or 0.0
            watched = {"up": up, "read": read, "totals": self._store.values}
            return _TEXT, render_surveys.metrics_text(rows, watched=watched) + process
        if path in ("/survey.json", "/events.json"):
            is_survey = path == "/survey.json"
            record = self._watcher.results().record() if is_survey else self._store.events()
            return _JSON, json.dumps(record)
        page = self._page(*path.removeprefix("/").partition("/"))
        return None if page is None else (_HTML, page)

    def _page(self, folder: str, slash: str, name: str) -> str | None:
        survey = self._watcher.results()
        if not folder and not slash:
            links = {group.id: f"groups/{group.id}" for group in survey.groups}
            source, state = self._source, self._state()
            return render_surveys.render_survey(survey, source=source, plans=links, state=state)
        if folder == "plans" and (page := self._watcher.plan_page(name, self._source)) is not None:
            return page
        group = next((group for group in survey.groups if group.id == name), None)
        events = self._store.events(name)
        if folder != "groups" or not (group or events):
            return None
        jinja = environment(_TEMPLATES, autoescape=True)
        jinja.filters["time"] = _time
        template, plan_page = jinja.get_template("group.html.j2"), f"/plans/{quote(name, safe='')}"
        values = {"name": name, "group": group, "events": events, "plan": plan_page}
        return template.render(**values, state=self._state())

    def _state(self) -> str:
        observed, problem = self._watcher.observed, self._watcher.problem
        read = "Not read yet" if observed is None else f"Read at {_time(observed)}"
        if problem is not None:
            return f"{read}. The cluster does not answer: {problem}"
        unread = self._watcher.records_problem
        return f"{read}." if unread is None else f"{read}. {UNCOUNTED}: {unread}"


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


class _Handler(BaseHTTPRequestHandler):
    server: "WatchServer"
    server_version, sys_version = "kassay", ""
    timeout = _SECONDS_PER_REQUEST

    def handle(self) -> None:
        """Limit the time in which a client must send its request."""
        self._deadline = Timer(_SECONDS_PER_REQUEST, self._close)
        self._deadline.daemon = True
        self._deadline.start()
        try:
            super().handle()
        finally:
            self._deadline.cancel()  # the thread of the timer, too, ends with the connection

    def _close(self) -> None:
        with suppress(OSError):
            socket.socket.shutdown(self.connection, socket.SHUT_RDWR)

    def parse_request(self) -> bool:
        """Read the headers of a request, and end the time limit for them."""
        is_valid = super().parse_request()
        self._deadline.cancel()
        return is_valid

    def do_GET(self) -> None:
        """Send a page. Only ``/health`` needs no authentication."""
        path, expected = unquote(self.path.partition("?")[0]), self.server.authorization
        given = self.headers.get("Authorization", "").encode()
        if path == "/health":
            self._send(HTTPStatus.OK, "ok\n")
        elif expected is not None and not hmac.compare_digest(given, expected):
            self._send(HTTPStatus.UNAUTHORIZED, "the credentials are wrong\n")
        else:
            try:
                kind, text = self.server.pages.find(path) or ("", "there is no such page\n")
            except KassayError as error:
                kind, text = _TEXT, f"{error}\n"
            self._send(HTTPStatus.OK if kind else HTTPStatus.NOT_FOUND, text, kind or _TEXT)

    def _send(self, status: HTTPStatus, text: str, kind: str = _TEXT) -> None:
        body = text.encode("utf-8", "replace")
        self.send_response(status)
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), **_HEADERS}
        if status is HTTPStatus.UNAUTHORIZED:
            headers["WWW-Authenticate"] = 'Basic realm="kassay", charset="UTF-8"'
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write no log lines, because the paths of requests can contain group names."""


class WatchServer(ThreadingTCPServer):
    """HTTP server with one thread per request and optional authentication."""

    allow_reuse_address = daemon_threads = True
    request_queue_size = 64

    def __init__(
        self,
        address: tuple[str, int],
        pages: Pages,
        *,
        credentials: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        token = None if credentials is None else base64.b64encode(credentials.encode())
        self.authorization = None if token is None else b"Basic " + token
        self.pages, self._free = pages, Semaphore(_MAX_REQUESTS)
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Handler)
        if tls is not None:
            # The handshake runs in the thread of the request: a slow client blocks no other.
            self.socket = tls.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a request, or close the connection if too many threads run."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.close_request(request)

    def shutdown_request(self, request: Any) -> None:
        """End a request and release its thread."""
        super().shutdown_request(request)
        self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the error of a request, unless it is a connection error."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)
