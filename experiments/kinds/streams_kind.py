"""Define the kinds of Streams groups and applications: causes, actions and measures."""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial

from kassay.experiments.implementations import run_assignor
from kassay.experiments.kinds import group_kind
from kassay.experiments.kinds.streams_comparison import compare_streams, read_application, setting
from kassay.experiments.kinds.streams_forecast import (
    CLASS,
    HIGH_AVAILABILITY,
    KEYS,
    RESTORE_MS,
    STANDBYS,
    compare_stable_application,
    event_rows,
    forecast_application,
    restart_process,
    run_application_until_stable,
)
from kassay.reference.documents.kind_documents import Kind, KindDocument

_ROLES = ("active", "standby")
_SHORT_NAME = "high-availability"
_MAX_RESTARTS = 10
"""Maximum number of processes that a plan restarts in simulations."""


def _run_until_stable(document: KindDocument, assignor: str) -> group_kind.StableRun:
    event = run_application_until_stable(document, assignor)
    if event.ending is not run_assignor.Ending.OK:
        return group_kind.StableRun(event.ending, event.detail, event.rebalances)
    return group_kind.StableRun(
        event.ending,
        rebalances=event.rebalances,
        compare=partial(compare_stable_application, document, event),
        measures=[group_kind.KindMeasure("rebalances", event.rebalances, None, None)],
    )


def _current_state(document: KindDocument) -> group_kind.CurrentState:
    is_group = document.kind is Kind.STREAMS_GROUP
    key, none = "members" if is_group else "processes", dict if is_group else list
    tasks = {
        one["id"]: {role: one.get(role, none()) for role in _ROLES} for one in document.content[key]
    }
    return group_kind.CurrentState(document, {key: tasks})


def _sizes(document: KindDocument) -> Mapping[str, int]:
    return {name: one["partitions"] for name, one in document.content["subtopologies"].items()}


def _threads(document: KindDocument) -> Mapping[str, int]:
    return {one["id"]: one["threads"] for one in document.content.get("processes", ())}


def _warmups(document: KindDocument) -> list[str]:
    """Return the tasks that have a warm-up."""
    content = document.content
    members, processes = content.get("members", ()), content.get("processes", ())
    tasks = [one.get("warmup", {}).items() for one in members]
    found = [f"{name}_{number}" for one in tasks for name, each in one for number in each]
    copies = Counter(task for one in processes for task in one.get("standby", ()))
    return found + [task for task, n in copies.items() if n > setting(document, STANDBYS)]


def _causes(given: group_kind.KindEvidence) -> Iterator[group_kind.KindCause]:
    cause, is_group = group_kind.KindCause.of, given.document.kind is Kind.STREAMS_GROUP
    application, threads = read_application(given.document), _threads(given.document)
    if missing := given.missing():
        names = group_kind.listed(["{}_{}".format(*task) for task in missing])
        yield cause("incomplete-rebalance", names=names)
        return
    processes = len(application.processes)
    standbys = max((one.standbys for one in application.stateful), default=0)
    if 0 < standbys >= processes:
        values = {"possible": processes - 1, "standbys": standbys, "processes": processes}
        yield cause("few-processes", **values)
    elif "missing_standbys" in given.above:
        yield cause("standbys", standbys=standbys)
    is_uneven = "active_sum_of_squares" in given.above
    # The broker's assignor gives no member more than this number of active tasks.
    most = -(-sum(given.sizes.values()) // max(1, len(given.places)))
    is_pending = given.is_improvable or (
        is_group and max(map(len, given.places.values()), default=0) > most
    )
    if is_uneven and (warmups := _warmups(given.document)):
        yield cause("warm-ups", names=group_kind.listed(warmups))
    elif is_uneven and is_pending:
        places = "Members" if is_group else "Processes"
        yield cause("pending-rebalance", loads=f"{places} run {given.loads()} active tasks")
    elif "stateful_sum_of_squares" in given.above and is_group:
        yield cause("state-ignored")
    elif "subtopology_spread_above_minimum" in given.above and is_group:
        yield cause("subtopologies-ignored", uneven=given.most_uneven())
    count, tasks = sum(threads.values()) or len(given.places), sum(given.sizes.values())
    if count > tasks:
        yield cause("idle-threads", threads=count, tasks=tasks)


def _actions(given: group_kind.KindEvidence) -> Iterator[group_kind.KindAction]:
    """Yield the actions restart and wait for probing rebalances, with simulated results."""
    content, document = given.document.content, given.document
    if document.kind is not Kind.STREAMS or content.get("assignor") not in (None, _SHORT_NAME):
        return
    if not (given.missing() or "active_sum_of_squares" in given.above):
        return
    starts = {f"Restart process {id}": restart_process(document, id) for id in given.places}
    if given.missing() or _warmups(document):
        interval = setting(document, "probing_rebalance_interval_ms") // 1000
        starts = {f"Wait for the probing rebalances, one every {interval} s": document}
    for text, start in list(starts.items())[:_MAX_RESTARTS]:
        event = run_application_until_stable(start, HIGH_AVAILABILITY, warmup_ms=RESTORE_MS)
        costs = {
            "state move": event.state_moves,
            "restored task": event.restored_copies,
            "rebalance": event.rebalances,
            "minute": event.probing_ms / 60_000,
        }
        if event.ending is run_assignor.Ending.OK:
            yield group_kind.KindAction(text, [(event.application, costs)])


STREAMS_GROUP = group_kind.GroupKind(
    kind=Kind.STREAMS_GROUP,
    title="Streams group",
    places="members",
    topics="subtopologies",
    no_action="the broker's assignor decides, and kassay has no port of it",
    sizes=_sizes,
    causes=_causes,
    compare=compare_streams,
    current_state=_current_state,
    no_forecast="no port of the broker's assignor exists; kassay compare runs it once",
)
STREAMS = group_kind.GroupKind(
    kind=Kind.STREAMS,
    title="Kafka Streams application",
    places="processes",
    topics="subtopologies",
    no_action="no rebalance that kassay simulates improves the application",
    sizes=_sizes,
    threads=_threads,
    causes=_causes,
    actions=_actions,
    compare=compare_streams,
    current_state=_current_state,
    run_until_stable=_run_until_stable,
    forecast=forecast_application,
    settings=(*KEYS, CLASS),
    assumption="Simulated events: the process with the highest cost restarts or leaves, and a "
    "new process joins. A rebalance takes no time, and a process restores the state of a task "
    "within 60 s.",
    event_rows=event_rows,
)
