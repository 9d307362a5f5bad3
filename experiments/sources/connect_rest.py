"""Convert the REST answer ``/connectors?expand=status`` of Kafka Connect to a document."""

import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping

from kassay.experiments.sources.document_rows import JsonFields
from kassay.reference.assignors.connect import DEFAULT_MAX_DELAY
from kassay.reference.documents.input_files import as_object, format_value, parse_json
from kassay.reference.documents.kind_documents import ASSUMED, Kind, KindDocument
from kassay.reference.model.errors import InputError, RunError

_PATH = "/connectors?expand=status&expand=info"
_STOPPED = ("UNASSIGNED", "DESTROYED")
_NOTES = [
    f"{ASSUMED}every worker runs a connector or a task",
    f"{ASSUMED}scheduled.rebalance.max.delay.ms is {DEFAULT_MAX_DELAY // 1000} s",
]
"""The REST interface shows neither idle workers nor settings of the workers."""


def is_connect_status(value: object) -> bool:
    """Return whether a JSON value is an answer of ``/connectors`` with ``expand=status``."""
    return (
        isinstance(value, Mapping)
        and bool(value)
        and all(
            isinstance(one, Mapping) and isinstance(one.get("status"), Mapping)
            for one in value.values()
        )
    )


def connect_document(value: object, *, where: str, id: str | None) -> KindDocument:
    """Convert an answer of ``/connectors?expand=status`` to a document of kind connect.

    The document has one step with the connectors and tasks that each worker runs. ``where`` is
    the name of the answer in errors.
    """
    counts: dict[str, int] = {}
    running: dict[str, dict[str, list[str]]] = {}
    for name, entry in as_object(value, where).items():
        status = JsonFields(as_object(entry, f"{where}: {name!r}"), f"{where}: {name!r}").inner(
            "status"
        )
        numbers = []
        for task in status.each("tasks"):
            number = task.count("id")
            numbers.append(number)
            _add(running, task, "tasks", f"{name}-{number}")
        counts[name] = max(numbers, default=-1) + 1
        _add(running, status.inner("connector"), "connectors", name)
    if not running:
        raise InputError(f"{where}: no worker runs a connector or a task")
    workers = sorted(running)
    content = {
        "kind": str(Kind.CONNECT),
        "id": id,
        "notes": _NOTES,
        "steps": [
            {
                "workers": workers,
                "connectors": dict(sorted(counts.items())),
                "running": {worker: running[worker] for worker in workers},
            }
        ],
    }
    return KindDocument(Kind.CONNECT, id, content)


def read_connect_cluster(url: str, *, timeout: float, id: str | None) -> KindDocument:
    """Read a running Connect cluster. ``url`` is the REST interface of one of its workers.

    The request does not change the cluster. ``timeout`` is in seconds.

    Raise RunError if there is no answer, or the answer is an error. Raise InputError if the URL is
    not a URL of HTTP, or the answer is not that of a worker of Kafka Connect.
    """
    host = url.partition("://")[2].partition("/")[0]
    if not url.lower().startswith(("http://", "https://")) or not host:
        raise InputError(
            f"--connect-url must be http://HOST:PORT or https://HOST:PORT, got {url!r}"
        )
    address = url.rstrip("/") + _PATH
    try:
        with urllib.request.urlopen(address, timeout=timeout) as answer:  # noqa: S310 - checked above
            text = answer.read().decode()
    except urllib.error.HTTPError as error:
        raise RunError(f"{address}: the answer is HTTP {error.code} {error.reason}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise RunError(f"{address}: no answer: {reason}") from None
    value = parse_json(text, where=address)
    if value != {} and not is_connect_status(value):
        raise InputError(
            f"{address}: the answer must be that of a worker of Kafka Connect, got "
            f"{format_value(value)}"
        )
    return connect_document(value, where=address, id=id or host)


def _add(running: dict[str, dict[str, list[str]]], entry: JsonFields, key: str, name: str) -> None:
    """Add a connector or task to its worker, unless it is not running."""
    if entry.text("state") in _STOPPED:
        return
    lists = running.setdefault(entry.text("worker_id"), {"connectors": [], "tasks": []})
    lists[key].append(name)
