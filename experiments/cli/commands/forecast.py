"""``kassay forecast``: predict the effect of changes of a group and of a sequence of events."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import ClassVar

import typer

from kassay.experiments.cli.application import (
    PROGRESS,
    check_name,
    given_options,
    option,
    print_note,
)
from kassay.experiments.cli.assignor_options import known_assignor
from kassay.experiments.cli.groups import (
    GroupResult,
    SelectedGroups,
    consumer_groups,
    process_each_group,
)
from kassay.experiments.cli.kind_results import forecasts_of_documents, parse_settings
from kassay.experiments.cli.output import Format, Record, TableLayout, error_record, format_option
from kassay.experiments.cli.search_options import AddedMembers, ObjectiveOptions, SearchOptions
from kassay.experiments.kinds.group_kind import ForecastRequest
from kassay.experiments.planning.identify_assignor import identify_assignor
from kassay.experiments.planning.plan_verdict import UnplannableGroupError, check_planning_start
from kassay.experiments.planning.planned_events import (
    forecast_events,
    load_planned_events,
    planned_rebalances,
    successive_rebalances,
)
from kassay.experiments.planning.predictions import (
    DEFAULT_CHANGES,
    OPTIMUM,
    Criterion,
    Prediction,
    RestartSettings,
    changed_groups,
    current_assignor,
    current_record,
    predict,
    recommend,
    simulate_configurations,
)
from kassay.reference.assignors import ASSIGNORS, NEWEST_ASSIGNORS
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import Tolerance
from kassay.solver.sizing import with_valid_ownership
from kassay.solver.solution import Status

_MAX_SECONDS = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastOptions:
    """Command-line options of ``kassay forecast``."""

    members: str | None = option(
        None,
        "Number of members: a number (8), a difference (+2, -1), a range (5..50, +0..+10), a "
        "range with a step (5..50:5) or a list (8,12).",
        metavar="COUNT",
    )
    partitions: list[str] | None = option(
        None, "Set the partition count of a topic; repeatable.", metavar="TOPIC=N"
    )
    assignor: list[str] | None = option(
        None,
        "Assignor to change to, or to compare after other changes and over events; repeatable. "
        f"{', '.join(ASSIGNORS)}. After --members and --partitions also an assignor of an "
        "installed library, such as kafka-clients@2.4.0:sticky (see `kassay libraries`).",
        show_default=f"{', '.join(DEFAULT_CHANGES)}; after other changes, that of the group",
    )
    current: str | None = option(
        None, "Current assignor of groups for which the source does not show it."
    )
    settings: list[str] | None = option(
        None,
        "Setting of Kafka Streams (max.warmup.replicas, probing.rebalance.interval.ms, "
        "num.standby.replicas, task.assignor.class) or Kafka Connect "
        "(scheduled.rebalance.max.delay.ms), with one or several values; repeatable.",
        "--set",
        metavar="KEY=VALUE,...",
    )
    at_once: list[int] | None = option(
        None,
        "Number of members that restart at the same time; repeatable.",
        min=1,
        show_default="1",
    )
    downtime: float = option(
        10.0, "Time during which the process of a restarting member does not run.", min=0
    )
    pause: float = option(
        30.0, "Time from the start of a restarted member to the stop of the next one.", min=0.1
    )
    session_timeout: float = option(45.0, "Session timeout of the members.", min=6)
    criterion: Criterion = option(
        Criterion.UNOWNED,
        "The recommendation minimises this cost of a rolling restart: rebalances, moves, or "
        "unowned (partition-seconds without an owner).",
        "--minimise",
    )
    output_format: Format = format_option(Format.JSONL)

    def restarts(self, seed: int) -> RestartSettings:
        """Return the timing of rolling restarts in milliseconds."""
        times = (self.downtime, self.pause, self.session_timeout)
        for name, seconds in zip(("downtime", "pause", "session-timeout"), times, strict=True):
            # Not a number also fails this comparison.
            if not seconds <= _MAX_SECONDS:
                raise typer.BadParameter(f"--{name} must be at most {_MAX_SECONDS}, got {seconds}")
        downtime, pause, session = (round(1000 * one) for one in times)
        return RestartSettings(downtime=downtime, pause=pause, session=session, seed=seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventOptions:
    """Command-line options for sequences of rebalances."""

    panel: ClassVar[str] = "Options for sequences of rebalances"

    events: Path | None = option(
        None,
        "Planned events, as in a simulation script: a YAML or JSON file with the key events, and "
        "optionally topics (new topics) and settings. kassay then finds the fewest moves over all "
        "rebalances of the events, and the moves of each assignor.",
        metavar="FILE",
    )
    hindsight: bool = option(
        False,
        "The groups of SOURCE are one group at successive rebalances. kassay finds the fewest "
        "moves over all of them, and the moves of each assignor. Owned partitions matter in the "
        "first group only.",
    )


def forecast(
    *,
    options: ForecastOptions,
    added: AddedMembers,
    planned: EventOptions,
    source: SelectedGroups,
    objective: ObjectiveOptions,
    search: SearchOptions,
) -> None:
    """Predict the effect of changes of a group, and compare it with the optimum.

    By default, kassay simulates each configuration from the current owners: the current one,
    static members, other assignors, and the consumer protocol. The result of a configuration has
    the cost of the change, by rolling restarts, and the cost of a later rolling restart, such as an
    upgrade of the client: rebalances, moves, and partition-seconds without an owner. The
    recommendation is the configuration with the lowest cost of a later restart, see --minimise.
    All times are in seconds.

    With --members and --partitions, kassay finds the optimal assignment of the changed group, and
    the result of one rebalance by --assignor, or by the port with the name of the group's assignor.
    All changes apply together; each number of members is one row. Exits with 1 if no assignment of
    a changed group is found within the constraints and the time limit.

    With --events or --hindsight, kassay compares the moves of each assignor over a sequence of
    rebalances with the fewest possible moves over all of them. Of the options of the objective,
    only --imbalance (sum_of_squares, leximax or makespan) and --tolerance apply.

    For a Connect cluster, kassay simulates a restart, a rolling restart, a new worker and the loss
    of a worker per setting of scheduled.rebalance.max.delay.ms, and recommends a setting. For a
    Streams application, it compares task assignors and settings. --set selects the settings.

    Example: `kassay forecast captures/ --at-once 1 --at-once 2 --format table`

    Example: `kassay forecast groups.jsonl --members +0..+5 --partitions orders=12 --format table`

    Example: `kassay forecast connect-status.json --downtime 30 --format table`

    Example: `kassay forecast rebalances.jsonl --hindsight --format table`
    """
    if planned.events is not None or planned.hindsight:
        if options.members or options.partitions or options.settings or added.like:
            raise typer.BadParameter(
                "--events and --hindsight cannot be combined with --members, --partitions, --like "
                "and --set"
            )
        _forecast_sequences(planned, options, source, objective, search)
        return
    timing = options.restarts(search.seed)
    request = ForecastRequest(
        downtime_ms=timing.downtime,
        pause_ms=timing.pause,
        assignors=options.assignor or (),
        changes=parse_settings(options.settings) if options.settings else None,
        limits=search.limits(),
    )
    others = forecasts_of_documents(request, options.output_format)
    printed: set[str] = set()

    def process(group: Group) -> GroupResult:
        if options.settings:
            raise typer.BadParameter("--set requires documents of Kafka Streams or Kafka Connect")
        try:
            check_planning_start(group)
        except UnplannableGroupError as error:
            return GroupResult(error_record(group.id, error, options.output_format), reached=False)
        result = _forecast(group, options, added, objective, search)
        # A group with assumed subscriptions is processed twice.
        for note in _notes(group, result.record, options, source):
            if note not in printed:
                print_note(note)
                printed.add(note)
        return result

    process_each_group(source, process, options.output_format, _LAYOUT, others=others)


def _forecast(
    group: Group,
    options: ForecastOptions,
    added: AddedMembers,
    objective: ObjectiveOptions,
    search: SearchOptions,
) -> GroupResult:
    """Predict the changes of one group, or simulate its configurations, and find the optima."""
    changed = changed_groups(
        group,
        members=options.members,
        partitions=options.partitions or (),
        like=added.like,
        allow_lag=added.allow_lag,
    )
    optima = {OPTIMUM: with_valid_ownership(group), **changed}
    if changed:
        shown = identify_assignor(group).name
        own = shown or options.current
        best = {"configuration": None, "at_once": None, "reason": "no restart is simulated"}
        entries = [current_record(group)]
        names = options.assignor or ([] if shown or not own else [own])
        assignors = [known_assignor(name) for name in names]
        found = list(_predictions(group, optima, assignors, objective, search))
    else:
        own = current_assignor(group, options.current)
        simulated = simulate_configurations(
            group,
            own,
            assignors=options.assignor,
            batch_sizes=options.at_once or [1],
            settings=options.restarts(search.seed),
        )
        best = asdict(recommend(simulated, options.criterion))
        entries = [one.record() for one in simulated]
        found = list(_predictions(group, optima, (), objective, search))
    record = {
        "id": group.id,
        "current": own,
        "own_assignor": identify_assignor(group).record(),
        "forecasts": [*entries, *(entry for _, entry in found)],
        "recommendation": best,
    }
    reached = all(status in (Status.OPTIMAL, Status.FEASIBLE) for status, _ in found)
    return GroupResult(record, reached=reached or not changed)


def _predictions(
    group: Group,
    changed: Mapping[str, Group],
    assignors: Sequence[str],
    objective: ObjectiveOptions,
    search: SearchOptions,
) -> Iterator[tuple[Status, Record]]:
    """Yield the status and the prediction of each changed group, until the search is stopped."""
    limits = search.limits()
    budget = SearchBudget.start(limits, search.seed)
    known: dict[Group, Prediction] = {}
    for index, (name, one) in enumerate(changed.items()):
        if limits.is_stopped:
            return
        PROGRESS(name)
        if one not in known:
            known[one] = predict(
                one,
                before=group,
                levels=objective.levels(one),
                constraints=objective.constraints(one),
                assignors=assignors,
                limits=budget.part(1 / (len(changed) - index)).rest(),
                seed=search.seed,
            )
        yield known[one].solution.status, known[one].record(name)


def _notes(
    group: Group, record: Record, options: ForecastOptions, source: SelectedGroups
) -> Iterator[str]:
    """Yield notes on the recommendation, on added members, and on the library."""
    best = record["recommendation"]
    if best["configuration"] is not None:
        if options.output_format is Format.TABLE:
            name, size, reason = best.values()
            yield f"{group.id}: recommended: {name}, {size} at once: {reason}"
            yield (
                f"{group.id}: loads and moves per assignor in one rebalance: "
                f"{_plan_command(group, source)}"
            )
        return
    entries = record["forecasts"]
    rebalanced = [one["members"] for one in entries if one.get("assignors")]
    if max(rebalanced, default=0) > entries[0]["members"]:
        yield (
            f"{group.id}: added members have the ids new-1, new-2, ...; the result of an assignor "
            "can depend on the order of the ids (range sorts members by id), and its moves can "
            "differ with other ids"
        )
    own = identify_assignor(group)
    if options.assignor is None and own.port is not None and not own.is_ported:
        yield f"group {group.id!r}: {own}"


def _plan_command(group: Group, source: SelectedGroups) -> str:
    """Return the command that plans the same group, or the same joined groups."""
    given = given_options(source, without=["--file", "--group"])
    ids = (source.group or []) if source.together else [group.id] if group.id else []
    selected = [part for id in ids for part in ("--group", id)]
    return shlex.join(["kassay", "plan", str(source.file), *given, *selected])


_COSTS = ("rebalances", "moves", "partition_seconds_without_owner")


def _rows(record: Record) -> Iterator[Sequence[object]]:
    is_simulated = any(one["restart"] for one in record["forecasts"])
    for one in record["forecasts"]:
        if one["restart"] is not None:
            change = one["change"] or dict.fromkeys(_COSTS, "–")
            costs = [part[key] for part in (change, one["restart"]) for key in _COSTS]
            sizes = (None, None, one["at_once"], one["rolling_restarts"])
            yield (one["configuration"], *sizes, *costs, one["maximum_load"])
            continue
        makespan, movement = one["makespan"] or {}, one["movement"] or {}
        load, moves, status = makespan.get("value"), movement.get("value"), _status(one)
        if is_simulated:
            status = "" if status == Status.OPTIMAL else status
            columns = (*[None] * 5, moves, *[None] * 4, load, *[None] * 4, status)
        else:
            idle = f" ({one['idle']} idle)" if one["idle"] else ""
            columns = (
                *(f"{one['members']}{idle}", one["partitions"], None, None, None, moves),
                *[None] * 4,
                *(load, makespan.get("bound"), movement.get("bound"), one["placed"]),
                "; ".join(map(_outcome, one.get("assignors", ()))),
                status,
            )
        yield (one["configuration"], *columns)


def _status(one: Record) -> str:
    status = str(one["status"])
    if status == Status.OPTIMAL and any(
        level["value"] != level["bound"] for level in one["levels"].values()
    ):
        status += " within the tolerance"
    if one.get("topics_without_subscribers"):
        status += f"; no subscriber of {', '.join(one['topics_without_subscribers'])}"
    return status


def _outcome(result: Record) -> str:
    if result["makespan"] is None:
        return f"{result['assignor']}: {result['ending']}"
    text = f"{result['assignor']}: {result['makespan']}, {result['movement']} moves"
    return f"{text}, {result['idle']} idle" if result["idle"] else text


_SIZES = ("members", "partitions")
_SIMULATED = ("at\nonce", "rolling\nrestarts", "change")
_LATER = ("unowned\ns", "later\nrestart", "later\nmoves", "later\nunowned s")
_BOUNDS = ("load\nbound", "moves\nbound", "no\nowner")
_LAYOUT = TableLayout(
    first=("configuration",),
    numbers=(*_SIZES, *_SIMULATED, "moves", *_LATER, "max\nload", *_BOUNDS),
    last=("assignor", "status"),
    optional=("partitions", "no\nowner"),
    not_empty=(*_SIZES, *_SIMULATED, *_LATER, *_BOUNDS, "assignor", "status"),
    rows=_rows,
)


def _forecast_sequences(
    planned: EventOptions,
    options: ForecastOptions,
    source: SelectedGroups,
    objective: ObjectiveOptions,
    search: SearchOptions,
) -> None:
    """Print the moves of each assignor over rebalances, and the fewest possible moves."""
    if planned.events is not None and planned.hindsight:
        raise typer.BadParameter("--events and --hindsight cannot be combined")
    if replace(objective, imbalance=None, tolerance=None) != ObjectiveOptions():
        raise typer.BadParameter(
            "--events and --hindsight have no other objective than --imbalance and --tolerance"
        )
    names = tuple(options.assignor or NEWEST_ASSIGNORS)
    for name in names:
        check_name("assignor", list(ASSIGNORS), name)
    groups = list(consumer_groups(source, options.output_format))
    sequence: list[Group] = []
    if planned.hindsight:
        for _, group in groups:
            if isinstance(group, InputError):
                raise group
            sequence.append(group)
        groups = groups[:1]
    share = objective.tolerance
    tolerance = None if share is None else Tolerance(relative=share)

    def process(group: Group) -> GroupResult:
        rebalances = (
            successive_rebalances(sequence)
            if planned.events is None
            else planned_rebalances(group, load_planned_events(planned.events, group))
        )
        found = forecast_events(
            rebalances,
            assignors=names,
            measure=objective.imbalance,
            tolerance=tolerance,
            limits=search.limits(),
        )
        own = identify_assignor(group).name or options.current
        return GroupResult(found.record(group, current=own))

    layout = TableLayout(
        first=("rebalance", "group at this time") if planned.hindsight else ("minute", "events"),
        numbers=("members", "fewest in total", "fewest at each", *names),
        rows=_sequence_rows,
    )
    process_each_group(
        source,
        process,
        options.output_format,
        layout,
        groups=groups,
        both_readings=not planned.hindsight,
    )


def _sequence_rows(record: Record) -> Iterator[Sequence[object]]:
    names = list(record["assignors"])
    for number, one in enumerate(record["rebalances"]):
        more = len(one["events"]) - 1
        yield (
            str(number) if one["at"] is None else f"{one['at'] / 60:.1f}",
            f"{one['events'][0]}, {more} more" if more else one["events"][0],
            *(one["members"], one["moves"], one["one_after_the_other"]),
            *(one["assignors"].get(name, "–") for name in names),
        )
    totals = record["assignors"]
    yield (
        "total",
        f"at least {record['moves']['bound']}",
        *("", record["moves"]["value"], record["one_after_the_other"]),
        *("failed" if (moves := totals[name]["moves"]) is None else moves for name in names),
    )
    for protocol, seconds in record["partition_seconds_without_owner"].items():
        own = (totals[name]["partition_seconds_without_owner"] for name in names)
        text = f"{protocol} protocol"
        yield ("unowned s", text, "", seconds, "", *(one.get(protocol, "–") for one in own))
    uneven = [totals[name]["uneven_rebalances"] for name in names]
    yield ("uneven", f"rebalances without {record['rule']}", "", 0, 0, *uneven)
