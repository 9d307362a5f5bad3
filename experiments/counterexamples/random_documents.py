"""Random small documents of share groups, Streams and Connect, after one event."""

from collections.abc import Mapping
from itertools import pairwise
from random import Random
from typing import Any

from kassay.experiments.implementations.runner import run_on_document
from kassay.reference.assignors.connect import DEFAULT_MAX_DELAY
from kassay.reference.documents.kind_documents import Kind, KindDocument, parse_kind_document

_END_OFFSET = 50_000
_MAX_TOPICS = 3
"""A topic without subscribers beside different subscriptions requires three topics."""
_EVENTS = ("join", "leave", "restart")


def random_case(kind: Kind, seed: int, *, assignor: str, places: int, tasks: int) -> KindDocument:
    """Return a random document: the state after an answer of the assignor, and then an event.

    Parameters
    ----------
    assignor
        If it has no answer, the state is that before the first answer.
    places
        Maximum number of members, processes or workers.
    tasks
        Maximum number of partitions or tasks.
    """
    rng = Random(f"{kind}/{seed}")  # noqa: S311 - reproducible cases
    if kind is Kind.CONNECT:
        return _document(kind, seed, _connect_steps(rng, places, tasks))
    ends = sorted(rng.sample(range(1, tasks + 1), rng.randint(1, min(_MAX_TOPICS, tasks))))
    sizes = [end - start for start, end in pairwise((0, *ends))]
    build = {
        Kind.SHARE: _share_group,
        Kind.STREAMS_GROUP: _streams_group,
        Kind.STREAMS: _streams_application,
    }[kind]
    content, key = build(rng, sizes, rng.randint(1, places))
    answer: Any = run_on_document(_document(kind, seed, content), assignor).answer
    if answer is None:
        return _document(kind, seed, content)
    if kind is Kind.SHARE:
        before = [{**one, "owned": answer["members"][one["id"]]} for one in content[key]]
    else:
        before = [{**one, **answer[key][one["id"]]} for one in content[key]]
    if kind is Kind.STREAMS:
        # Standbys have restored their state.
        before = [{**one, "lags": dict.fromkeys(one["standby"], 0)} for one in before]
    after = _after_event(rng, kind, content, before)[: max(places, 1)]
    return _document(kind, seed, {**content, key: after})


def _document(kind: Kind, seed: int, content: Mapping[str, Any]) -> KindDocument:
    table = {"kind": str(kind), "id": f"{kind}/{seed}", **content}
    return parse_kind_document(table, kind=kind)


def _share_group(rng: Random, sizes: list[int], count: int) -> tuple[dict[str, Any], str]:
    names = [f"t{index}" for index in range(len(sizes))]
    members = [
        {"id": f"m{index}", "topics": rng.sample(names, rng.randint(1, len(names)))}
        for index in range(count)
    ]
    return {"topics": dict(zip(names, sizes, strict=True)), "members": members}, "members"


def _streams_group(rng: Random, sizes: list[int], count: int) -> tuple[dict[str, Any], str]:
    members = [{"id": f"m{n}", "process": f"p{rng.randint(0, n)}"} for n in range(count)]
    content = {"num_standby_replicas": rng.randint(0, 1), "subtopologies": _topology(rng, sizes)}
    return {**content, "members": members}, "members"


def _streams_application(rng: Random, sizes: list[int], count: int) -> tuple[dict[str, Any], str]:
    topology = _topology(rng, sizes)
    for one in topology.values():
        one["end_offsets"] = [_END_OFFSET] * one["partitions"]
    processes = [_process(rng, index) for index in range(count)]
    config = {"num_standby_replicas": rng.randint(0, 1)}
    return {"config": config, "subtopologies": topology, "processes": processes}, "processes"


def _process(rng: Random, index: int) -> dict[str, Any]:
    order = rng.randint(0, 0xFFFF)  # processes are ordered by id
    return {"id": f"00000000-0000-0000-{order:04x}-{index:012x}", "threads": rng.randint(1, 2)}


def _topology(rng: Random, sizes: list[int]) -> dict[str, dict[str, Any]]:
    stateful = [rng.random() < 0.6 for _ in sizes]
    stateful[rng.randrange(len(sizes))] = True
    return {
        str(index): {"partitions": size, "stateful": is_stateful}
        for index, (size, is_stateful) in enumerate(zip(sizes, stateful, strict=True))
    }


def _after_event(
    rng: Random, kind: Kind, content: Mapping[str, Any], places: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the places after a join, a leave, or a restart that keeps the local state.

    A member of a share group can also change its subscription.
    """
    event = rng.choice((*_EVENTS, "resubscribe") if kind is Kind.SHARE else _EVENTS)
    if event == "join":
        return [*places, _joined(rng, kind, content, len(places))]
    left = rng.randrange(len(places))
    rest = places[:left] + places[left + 1 :]
    if event == "leave":
        return rest or places
    if event == "resubscribe":
        changed = _joined(rng, kind, content, left)["topics"]
        return [*places[:left], {**places[left], "topics": changed}, *rest[left:]]
    together = [places[left]]
    if kind is Kind.STREAMS_GROUP:
        # All threads of a process restart together, and one of them reports the local state.
        process = places[left]["process"]
        together = [one for one in places if one["process"] == process]
        rest = [one for one in places if one["process"] != process]
    restarted = [
        {key: value for key, value in one.items() if key not in ("owned", "active", "standby")}
        for one in together
    ]
    if kind is Kind.STREAMS_GROUP:
        restarted[0]["offsets"] = _local_offsets(content, together)
    if kind is Kind.STREAMS:
        restarted[0]["lags"] |= dict.fromkeys(places[left]["active"], 0)
    return [*rest, *restarted]


def _local_offsets(
    content: Mapping[str, Any], members: list[dict[str, Any]]
) -> dict[str, dict[str, int]]:
    """Return the offsets of the stateful tasks of members by subtopology and partition."""
    found: dict[str, dict[str, int]] = {}
    for name, one in content["subtopologies"].items():
        held = (n for m in members for key in ("active", "standby") for n in m[key].get(name, ()))
        if one["stateful"]:
            found[name] = {str(number): _END_OFFSET for number in sorted(held)}
    return found


def _joined(rng: Random, kind: Kind, content: Mapping[str, Any], index: int) -> dict[str, Any]:
    if kind is Kind.STREAMS:
        return _process(rng, index)
    if kind is Kind.STREAMS_GROUP:
        return {"id": f"m{index}", "process": f"p{rng.randint(0, index)}"}
    names = list(content["topics"])
    return {"id": f"m{index}", "topics": rng.sample(names, rng.randint(1, len(names)))}


def _connect_steps(rng: Random, places: int, tasks: int) -> dict[str, Any]:
    """Return a sequence of joins, leaves and restarts with one or two connectors."""
    first = rng.randint(1, tasks)
    connectors = {"a": first}
    if tasks > first:
        connectors["b"] = rng.randint(1, tasks - first)
    workers = [f"w{index}" for index in range(rng.randint(1, places))]
    steps: list[dict[str, Any]] = [{"workers": workers, "connectors": connectors}]
    for number in range(rng.randint(1, 2)):
        event = rng.choice(_EVENTS)
        workers = list(steps[-1]["workers"])
        if event == "join" and len(workers) < places:
            workers.append(f"w{places + number}")
        elif len(workers) > 1:
            workers.pop(rng.randrange(len(workers)))
        step = {"workers": workers, "connectors": connectors, "wait_ms": 600_000}
        if event == "restart":
            steps.append({**step, "until_stable": False})
            step = {**step, "workers": [*workers, f"w{places + number}"], "wait_ms": 30_000}
        steps.append(step)
    return {"scheduled_rebalance_max_delay_ms": DEFAULT_MAX_DELAY, "steps": steps}
