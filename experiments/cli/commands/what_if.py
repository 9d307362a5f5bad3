"""``kassay what-if``: find the optimal assignment of each group after changes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from kassay.experiments.cli.assignor_options import assignor_option
from kassay.experiments.cli.kind_results import forecasts_of_documents, parse_settings
from kassay.experiments.cli.option_groups import option
from kassay.experiments.cli.output import Format, Record, TableLayout, error_record, format_option
from kassay.experiments.cli.process_each_group import GroupResult, process_each_group
from kassay.experiments.cli.run_control import PROGRESS, print_note
from kassay.experiments.cli.search_options import (
    AddedMembers,
    ObjectiveOptions,
    SearchOptions,
    downtime_option,
    pause_option,
)
from kassay.experiments.cli.source_options import SelectedGroups
from kassay.experiments.kinds.group_kind import ForecastRequest
from kassay.experiments.planning.identify_assignor import identify_assignor
from kassay.experiments.planning.plan_verdict import UnplannableGroupError, check_planning_start
from kassay.experiments.planning.what_if import (
    NamedChange,
    ScenarioResult,
    current_state,
    mean_weight,
    named_changes,
    scenarios,
    solve_scenarios,
)
from kassay.reference.model.group import Group
from kassay.solver.solution import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfOptions:
    """Command-line options of ``kassay what-if``."""

    members: str | None = option(
        None,
        "Number of members: a number (8), a difference (+2, -1), a range (5..50, +0..+10), a "
        "range with a step (5..50:5) or a list (8,12).",
        metavar="COUNT",
    )
    partitions: list[str] | None = option(
        None, "Set the partition count of a topic; repeatable.", metavar="TOPIC=N"
    )
    settings: list[str] | None = option(
        None,
        "Setting of Kafka Streams (max.warmup.replicas, probing.rebalance.interval.ms, "
        "num.standby.replicas, task.assignor.class) or Kafka Connect "
        "(scheduled.rebalance.max.delay.ms), with one or several values; repeatable.",
        "--set",
        metavar="KEY=VALUE,...",
    )
    downtime: float = downtime_option()
    pause: float = pause_option()
    assignor: str | None = assignor_option()
    output_format: Format = format_option(Format.JSONL)

    def changes(self, added: AddedMembers, weights: Path | None) -> list[Sequence[NamedChange]]:
        """Return the changes of the group. ``weights`` is a file with its new weights."""
        return named_changes(
            members=self.members,
            like=added.like,
            allow_lag=added.allow_lag,
            partitions=self.partitions or (),
            weights=weights,
        )


def what_if(
    options: WhatIfOptions,
    added: AddedMembers,
    source: SelectedGroups,
    objective: ObjectiveOptions,
    search: SearchOptions,
) -> None:
    """Find the optimal assignment of a group after changes to the group.

    All changes apply together. If an option has several values, each combination is one scenario.
    The first row shows the current assignment. The second row shows the optimum of the unchanged
    group. Each scenario also shows the result of --assignor, or of the port with the name of the
    group's assignor. If the assignor may run in a client library other than Java's, a note states
    the library or that it is not known. For weighted groups, the default of --tolerance is 2 %.
    Exits with 1 if no assignment of a scenario is found within the constraints and the time limit.

    For a Streams application or a Connect cluster, --set changes settings. The result has the costs
    of a restart, a new and a lost process or worker with the current and the changed settings.

    Example: `kassay what-if connect.json --set scheduled.rebalance.max.delay.ms=40000`

    Example: `kassay what-if groups.jsonl --members +0..+5 --partitions orders=12 --format table`
    """
    # A file of weights is a change: the first scenario is the current group without it.
    table = source.weight_file
    if table is not None:
        source = replace(source, weights=None)
    request = ForecastRequest(
        downtime_ms=round(1000 * options.downtime),
        pause_ms=round(1000 * options.pause),
        changes=parse_settings(options.settings or ()),
        limits=search.limits(),
    )
    others = forecasts_of_documents("what-if", request, options.output_format)
    alternatives = options.changes(added, table)
    printed: set[str] = set()

    def process(group: Group) -> GroupResult:
        if options.settings:
            raise typer.BadParameter("--set requires documents of Kafka Streams or Kafka Connect")
        try:
            check_planning_start(group)
        except UnplannableGroupError as error:
            return GroupResult(error_record(group.id, error, options.output_format), reached=False)
        changed = scenarios(group, alternatives) if alternatives else ()
        all_scenarios = [*scenarios(group, ()), *changed]
        results = solve_scenarios(
            group,
            all_scenarios,
            levels=objective.levels,
            constraints=objective.constraints,
            assignor=options.assignor,
            limits=search.limits(),
            seed=search.seed,
            progress=PROGRESS,
        )
        # A group with assumed subscriptions is processed twice.
        for note in _notes(group, results, options):
            if note not in printed:
                print_note(note)
                printed.add(note)
        return _result(group, results)

    layout = TableLayout(
        first=("scenario",),
        numbers=(
            *("members", "partitions", "maximum load", "load\nbound"),
            *("moves", "moves\nbound", "no\nowner"),
        ),
        optional=("partitions", "no\nowner"),
        last=("assignor", "status"),
        rows=_rows,
    )
    process_each_group(
        source, process, output_format=options.output_format, layout=layout, others=others
    )


def _result(group: Group, results: Sequence[ScenarioResult]) -> GroupResult:
    """Return the scenarios as JSON."""
    return GroupResult(
        {
            "id": group.id,
            "own_assignor": identify_assignor(group).record(),
            "scenarios": [current_state(group), *(one.record() for one in results)],
        },
        reached=all(one.solution.status in (Status.OPTIMAL, Status.FEASIBLE) for one in results),
    )


def _notes(
    group: Group, results: Sequence[ScenarioResult], options: WhatIfOptions
) -> Iterator[str]:
    """Yield notes on added partitions and members, and on a client library other than Java's."""
    for text in options.partitions or ():
        topic = group.topic_table().get(text.rpartition("=")[0])
        if topic is not None and topic.weights is not None:
            yield (
                f"{group.id}: added partitions of {topic.name} have weight {mean_weight(topic)}, "
                "the mean of the topic"
            )
    rebalanced = [one.scenario.group for one in results if one.rebalance is not None]
    if any({m.id for m in changed.members} - group.member_table().keys() for changed in rebalanced):
        yield (
            f"{group.id}: added members have the ids new-1, new-2, ...; the result of an assignor "
            "can depend on the order of the ids (range sorts members by id), and its moves can "
            "differ with other ids"
        )
    own = identify_assignor(group)
    if options.assignor is None and own.port is not None and not own.is_ported:
        yield f"group {group.id!r}: {own}"


def _rebalance(result: Mapping[str, object] | None) -> str:
    if result is None:
        return ""
    if result["makespan"] is None:
        return f"{result['assignor']}: {result['ending']}"
    text = f"{result['assignor']}: {result['makespan']}, {result['movement']} moves"
    return f"{text}, {result['idle']} idle" if result["idle"] else text


def _rows(record: Record) -> Iterator[Sequence[object]]:
    for result in record["scenarios"]:
        makespan, movement = result["makespan"] or {}, result["movement"] or {}
        status = result["status"]
        if status == Status.OPTIMAL and any(
            level["value"] != level["bound"] for level in result["levels"].values()
        ):
            status += " within the tolerance"
        if result.get("topics_without_subscribers"):
            status += f"; no subscriber of {', '.join(result['topics_without_subscribers'])}"
        yield (
            result["scenario"],
            f"{result['members']}" + (f" ({result['idle']} idle)" if result["idle"] else ""),
            result["partitions"],
            makespan.get("value"),
            makespan.get("bound"),
            movement.get("value"),
            movement.get("bound"),
            result["placed"],
            _rebalance(result.get("assignor")),
            status,
        )
