"""The server of the watcher: pages, metrics, access, and hostile clients."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from kassay.experiments.planning.render_surveys import metrics_text
from kassay.experiments.planning.survey import Survey, survey_group
from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.live_cluster.live_groups import import_live
from kassay.experiments.watch import server
from kassay.experiments.watch.event_database import Store
from kassay.experiments.watch.watcher import Watcher
from tests.experiments.watch.scripted_cluster import Owners, ScriptedCluster
from tests.stored_cases import stored_cases

HOSTILE = "<script>alert(1)</script>/../\x1b[31m\u202e\n\0" + "x" * 2000
HUGE = "<script>alert(2)</script>" + "y" * 1_000_000
GROUPS = {
    "orders": {"a-1": [0, 1, 2, 3, 4, 5], "b-1": [6, 7]},
    HOSTILE: {"<img src=x>": [0, 1, 2, 3, 4, 5, 6, 7], "b": []},
}
Get = Callable[..., tuple[int, str]]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., str]]:
    servers: list[server.WatchServer] = []

    def start(
        credentials: str | None = None,
        groups: Mapping[str, Owners] = GROUPS,
        tls: ssl.SSLContext | None = None,
    ) -> str:
        store = Store(tmp_path / "watch.sqlite")
        watcher = Watcher(lambda: ScriptedCluster(groups), store)  # type: ignore[arg-type,return-value]
        watcher.observe()
        pages = server.Pages(watcher, store, source="test")
        one = server.WatchServer(("127.0.0.1", 0), pages, credentials=credentials, tls=tls)
        Thread(target=one.serve_forever, daemon=True).start()
        servers.append(one)
        return f"http{'' if tls is None else 's'}://127.0.0.1:{one.server_address[1]}"

    yield start
    for one in servers:
        one.shutdown()
        one.server_close()


def get(
    address: str, *, user: str | None = None, method: str = "GET", tls: ssl.SSLContext | None = None
) -> tuple[int, str]:
    request = urllib.request.Request(address, method=method)
    if user is not None:
        request.add_header("Authorization", f"Basic {base64.b64encode(user.encode()).decode()}")
    try:
        with urllib.request.urlopen(request, timeout=200, context=tls) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_pages_and_metrics_show_the_same_loads(serve: Callable[..., str]) -> None:
    address = serve()
    record = json.loads(get(f"{address}/survey.json")[1])
    [orders] = [one for one in record["groups"] if one["id"] == "orders"]
    assert orders["makespan"] == {"current": 6, "planned": 4, "bound": 4}
    metrics = get(f"{address}/metrics")[1]
    assert 'kassay_survey_maximum_load{group="orders"} 6\n' in metrics
    assert 'kassay_survey_maximum_load_bound{group="orders"} 4\n' in metrics
    assert 'kassay_survey_topic_spread{group="orders",topic="t"} 4\n' in metrics
    assert "kassay_watch_cluster_up 1.0" in metrics
    assert 'kassay_survey_members_that_help{group="orders"} 3\n' in metrics
    page = get(f"{address}/groups/orders")[1]
    assert "6 → 4" in page
    assert "3 members lower the maximum load" in page
    assert "2 moves" in get(f"{address}/plans/orders")[1]


def test_metrics_are_those_of_a_survey(serve: Callable[..., str]) -> None:
    metrics = get(f"{serve()}/metrics")[1]
    cluster: Any = ScriptedCluster(GROUPS)
    imported = import_live(cluster, (), ImportOptions())
    survey = Survey.of(survey_group(one.group) for one in imported if one.group is not None)
    assert len(survey.groups) == len(GROUPS)
    assert metrics.startswith(metrics_text(survey.metric_rows()))


def test_names_of_groups_and_members_are_escaped(serve: Callable[..., str]) -> None:
    address = serve()
    for path in ("/", "/groups/" + urllib.request.quote(HOSTILE, safe="")):
        status, page = get(address + path)
        assert status == 200
        assert "alert(1)" in page
        for raw in ("<script>alert", "<img src=x>", "\x1b", "\u202e", "\0"):
            assert raw not in page
    assert "\n<script>" not in get(f"{address}/metrics")[1]


def test_a_name_of_a_megabyte_is_escaped(serve: Callable[..., str]) -> None:
    address = serve(groups={HUGE: {HUGE: range(8), "b": []}})
    for path in ("/", "/metrics", "/survey.json", "/events.json"):
        status, page = get(address + path)
        assert status == 200
        assert "y" * 1_000_000 in page
        assert path != "/" or "<script>alert" not in page
    assert get(f"{address}/groups/{'y' * 1_000_000}")[0] == 414


@pytest.mark.parametrize("user", [None, "admin:wrong", "admin", ":", "admin:secre", "x" * 20_000])
def test_wrong_credentials_see_only_the_health(serve: Callable[..., str], user: str | None) -> None:
    address = serve("admin:secret")
    for path in (
        "/",
        "/metrics",
        "/survey.json",
        "/events.json",
        "/groups/orders",
        "/plans/orders",
    ):
        status, text = get(address + path, user=user)
        assert status == 401
        assert "orders" not in text
    assert get(f"{address}/health") == (200, "ok\n")
    assert get(f"{address}/metrics", user="admin:secret")[0] == 200


@pytest.mark.parametrize("path", stored_cases("unknown_paths_of_the_watcher"))
def test_unknown_paths_have_no_page(serve: Callable[..., str], path: str) -> None:
    assert get(serve() + path)[0] == 404


def test_other_methods_are_refused(serve: Callable[..., str]) -> None:
    assert {get(serve(), method=method)[0] for method in ("POST", "PUT", "DELETE")} == {501}


def test_slow_and_large_requests_block_no_other_client(serve: Callable[..., str]) -> None:
    address = serve()
    port = int(address.rpartition(":")[2])
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
    for one in slow:
        one.sendall(b"GET / HT")
    large = socket.create_connection(("127.0.0.1", port))
    large.sendall(b"GET /" + b"x" * 70_000)
    assert b" 414 " in large.recv(1000)
    headers = socket.create_connection(("127.0.0.1", port))
    headers.sendall(b"GET / HTTP/1.0\r\n" + b"A: b\r\n" * 200 + b"\r\n")
    assert b" 431 " in headers.recv(1000)
    assert get(f"{address}/health")[0] == 200
    for one in (*slow, large, headers):
        one.close()


def test_a_request_that_arrives_byte_by_byte_ends(
    serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_SECONDS_PER_REQUEST", 1.0)
    port = int(serve().rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=0.1) as slow:
        for _ in range(100):
            slow.sendall(b"G")
            with suppress(TimeoutError):
                assert slow.recv(10) == b""
                return
    pytest.fail("the connection is still open after 10 seconds")


def test_further_requests_are_refused_while_many_run(serve: Callable[..., str]) -> None:
    address = serve()
    port = int(address.rpartition(":")[2])
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(32)]
    with socket.create_connection(("127.0.0.1", port), timeout=20) as further:
        assert further.recv(10) == b""
    for one in slow:
        one.close()
    closed = time.monotonic()
    while threading.active_count() > 20:
        time.sleep(0.05)
    assert time.monotonic() - closed < server._SECONDS_PER_REQUEST / 2
    assert get(f"{address}/health")[0] == 200


def test_pages_are_served_with_tls(serve: Callable[..., str], tmp_path: Path) -> None:
    pem = tmp_path / "server.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=watch"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(pem), "-out", f"{pem}.crt"]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{pem}.crt", pem)
    address = serve("admin:secret", tls=context)
    client = ssl.create_default_context(cafile=f"{pem}.crt")
    assert get(f"{address}/survey.json", tls=client)[0] == 401
    assert get(f"{address}/survey.json", user="admin:secret", tls=client)[0] == 200


@pytest.mark.long
def test_ten_thousand_requests_leave_nothing_behind(serve: Callable[..., str]) -> None:
    address = serve("admin:secret")
    paths = ("/", "/metrics", "/groups/orders", "/plans/orders", "/none", "/events.json")

    def request(count: int) -> tuple[int, int]:
        for number in range(count):
            user = "admin:secret" if number % 5 else f"admin:{number}"
            get(address + paths[number % len(paths)], user=user)
        time.sleep(2)  # A thread of the server closes its connection after the response.
        pages = Path("/proc/self/statm").read_text().split()[1]
        return int(pages) * 4096, len(list(Path("/proc/self/fd").iterdir()))

    (warm, before), (memory, after) = request(1_000), request(9_000)
    assert memory - warm < 20e6
    assert after - before < 5
    assert threading.active_count() < 20
