"""Events of Streams applications, as changes of their documents."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kassay.reference.documents.kind_documents import KindDocument, parse_task
from kassay.reference.model.errors import InputError


def join_process(
    document: KindDocument, id: str, *, threads: int, tags: Mapping[str, str] | None = None
) -> KindDocument:
    """Add a process without state. ``id`` is a UUID."""
    process = {"id": id, "threads": threads, **({"tags": dict(tags)} if tags else {})}
    return _with_processes(document, [*_processes(document), process])


def leave_process(document: KindDocument, id: str) -> KindDocument:
    """Remove a process and its state."""
    left = _process(document, id)
    return _with_processes(document, [one for one in _processes(document) if one is not left])


def restart_process(document: KindDocument, id: str) -> KindDocument:
    """Restart a process that keeps its id and its state, within the session timeout.

    Its stateful active tasks become local state without a lag. Its standby tasks keep their lag.
    """
    content: Any = document.content
    restarted = _process(document, id)
    active = [
        task
        for task in restarted.get("active", ())
        if content["subtopologies"][str(parse_task(task).subtopology)]["stateful"]
    ]
    lags = {task: restarted.get("lags", {}).get(task, 0) for task in active}
    changed = {
        **restarted,
        "active": [],
        "standby": [*active, *restarted.get("standby", ())],
        "lags": {**restarted.get("lags", {}), **lags},
    }
    return _with_processes(
        document, [changed if one is restarted else one for one in _processes(document)]
    )


def _processes(document: KindDocument) -> list[dict[str, Any]]:
    processes: Any = document.content["processes"]
    return list(processes)


def _process(document: KindDocument, id: str) -> dict[str, Any]:
    processes = _processes(document)
    found = next((process for process in processes if process["id"] == id), None)
    if found is None:
        known = ", ".join(process["id"] for process in processes) or "none"
        raise InputError(f"process {id} is not in the document; its processes: {known}")
    return found


def _with_processes(document: KindDocument, processes: list[dict[str, Any]]) -> KindDocument:
    return replace(document, content={**document.content, "processes": processes})
