"""``kassay explain``: find the chains of transfers that improve an assignment."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from kassay.experiments.cli.assignor_options import assignor_option
from kassay.experiments.cli.kind_results import (
    consumer_groups,
    unneeded_moves_of_documents,
)
from kassay.experiments.cli.option_groups import option
from kassay.experiments.cli.output import (
    Format,
    Record,
    TableLayout,
    TableOptions,
    format_option,
    numbered,
    plot_option,
)
from kassay.experiments.cli.process_each_group import GroupResult, process_each_group
from kassay.experiments.cli.run_control import STOP
from kassay.experiments.cli.search_options import SearchOptions
from kassay.experiments.cli.source_options import GroupSource
from kassay.experiments.comparison.optimum import keep_owners
from kassay.experiments.implementations.library_catalogue import (
    is_library_assignor,
)
from kassay.experiments.implementations.runner import run_until_stable
from kassay.experiments.planning.identify_assignor import identify_assignor
from kassay.experiments.planning.moves import (
    WeightedExplanation,
    explain_weighted,
)
from kassay.reference.assignors import run_assignor
from kassay.reference.documents.json_codec import load_assignment
from kassay.reference.model.assignment import Assignment, violations
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.reference.model.ownership import NO_OWNER, ownership
from kassay.solver.network.improving_chains import Explanation
from kassay.solver.network.improving_chains import explain as explain_group
from kassay.solver.solution import value_and_bound

_DEFAULT_ASSIGNOR = "range"
_WITHIN_TOLERANCE = "no lower maximum load was found beyond the tolerance of 2 %"
_INTERRUPTED = "the search for an improvement was interrupted"
_REPEATED_STATE = "the assignor does not terminate; its repeated state is explained"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainOptions(TableOptions):
    """Command-line options of ``kassay explain``."""

    assignor: str | None = assignor_option(of_each_kind=True)
    assignment: Path | None = option(
        None, "File with the assignment to explain; cannot be combined with --assignor."
    )
    plot: Path | None = plot_option()
    output_format: Format = format_option(Format.JSONL)


def explain(
    options: ExplainOptions,
    source: GroupSource,
    search: SearchOptions = SearchOptions(work=20.0),
) -> None:
    """Explain why an assignment is not optimal, as chains of transfers.

    Without --assignor and --assignment, kassay explains the current assignment. If no member
    owns a partition, kassay explains the result of the port with the name of the group's
    assignor. If this name is not known, kassay explains the result of range, the default of the
    Java client. If the assignor may run in a client library other than Java's, the output states
    the library or that it is not known.

    Equal weights: each step is a chain of transfers that lowers the imbalance, a shortest one up to
    32 transfers; if no chain lowers the imbalance, the step makes fewer moves. After the last step
    the assignment is optimal. Capacities of members are ignored. A step with "direct" true is one
    transfer between members with loads that differ by two or more. Kafka's sticky assignors search
    only for such steps; for these steps, the column "by sticky" of the table contains "yes".

    Different weights: the steps are the moves of a plan with few moves and a maximum load of at
    most 2 % above the lowest one found. The time limit applies to the search for this plan. The
    key "planned_movement" contains the number of moves of the steps and a lower bound. The key
    "moved" contains one reason per move from the current to the explained assignment.

    If the assignor does not terminate, kassay explains the repeated state and prints a note.

    For assignors of share groups, Streams and Connect, the output lists the moves that were not
    needed.

    Example: `kassay explain groups.jsonl --assignor sticky --format table`
    """
    if options.assignor is not None and options.assignment is not None:
        raise typer.BadParameter("give at most one of --assignor and --assignment")
    names = [] if options.assignor is None else [options.assignor]
    others = unneeded_moves_of_documents(names, search.limits())
    groups = consumer_groups(source.file, source.import_options(), others, options.output_format)
    given = None if options.assignment is None else load_assignment(options.assignment)
    files = numbered(options.plot)

    def process(group: Group) -> GroupResult:
        record, explained = _explained(group, options.assignor, given)
        if isinstance(explained, str):
            return GroupResult(record | {"failed": explained})
        violation = next(violations(group, explained), None)
        if violation is not None and given is not None:
            raise InputError(f"group {group.id!r}: the assignment is not valid: {violation}")
        if violation is not None:
            return GroupResult(record | {"optimal": None, "reason": violation})
        if group.uniform_weight is None:
            result = explain_weighted(group, explained, limits=search.limits(), seed=search.seed)
            steps, optimal = result.steps, result.is_optimal
            record |= _weighted(result)
            reason = _reason(result)
        else:
            steps = explain_group(group, explained, limits=search.limits())
            optimal = None if STOP.is_set() and not steps else not steps
            reason = ""
        if not steps and not optimal:
            record["reason"] = _INTERRUPTED if STOP.is_set() else reason
        if options.plot is not None:
            from kassay.experiments.plotting.matplotlib_figures import draw_improving_chains

            draw_improving_chains(steps, next(files), title=group.id)
        return GroupResult(record | {"optimal": optimal, "steps": [_step(step) for step in steps]})

    first = ("step", "improving chain", "by sticky")
    layout = TableLayout(first=first, not_empty=("by sticky",), rows=_rows)
    process_each_group(
        source,
        process,
        options.output_format,
        layout,
        groups=groups,
        both_readings=options.plot is None,
    )


def _explained(
    group: Group, assignor: str | None, given: Assignment | None
) -> tuple[dict[str, object], Assignment | str]:
    """Return the first fields of the JSON record, and the assignment or the failure.

    If the assignor fails, return the reason of the failure instead of the assignment.
    """
    own = identify_assignor(group)
    record: dict[str, object] = {"id": group.id}
    if own.name is not None or own.libraries:
        record["own_assignor"] = own.record()
    if given is not None:
        return record, given
    owned = any((owners != NO_OWNER).any() for owners in ownership(group).owners.values())
    if assignor is None and owned:
        return record | {"assignment": "current"}, keep_owners(group)
    name = assignor or own.port or _DEFAULT_ASSIGNOR
    record["assignor"] = name
    if is_library_assignor(name):
        stable = run_until_stable(group, name)
        return record, stable.assignment or f"{stable.ending}: {stable.detail}"
    outcome = run_assignor(group, name)
    if outcome.livelock is not None:
        return record | {"note": _REPEATED_STATE}, outcome.livelock.state
    failed = str(outcome.failed)
    return record, failed if outcome.assignment is None else outcome.assignment


def _weighted(result: WeightedExplanation) -> dict[str, object]:
    """Convert the explanation of a weighted assignment to fields of the JSON record."""
    return {
        "measure": "makespan",
        "imbalance": value_and_bound(result.makespan),
        "movement": value_and_bound(result.movement),
        "planned_movement": value_and_bound(result.planned),
        "moved": [
            {
                "partition": list(move.partition),
                "from": move.owner,
                "to": move.assignee,
                "unnecessary": move.is_unnecessary,
                "reason": str(move),
            }
            for move in result.moves
        ],
    }


def _reason(result: WeightedExplanation) -> str:
    """Describe why a weighted assignment without improving steps is not proven optimal."""
    if result.unnecessary_moves:
        return f"{result.unnecessary_moves} of {len(result.moves)} moves are unnecessary"
    if result.makespan.gap == 0:
        return "the maximum load is minimal; it is not proven that the number of moves is minimal"
    return _WITHIN_TOLERANCE


def _step(step: Explanation) -> dict[str, object]:
    return {
        "description": str(step),
        "direct": step.is_direct,
        "transfers": [
            {"partition": list(t.partition), "from": t.giver, "to": t.taker} for t in step.transfers
        ],
        "loads": {member: [before, after] for member, before, after in step.loads},
        "moves": step.moves,
        "imbalance": list(step.imbalance),
    }


def _note_on_moves(value: int, bound: int) -> str:
    return (
        f"note: the steps make {value} moves; at least {bound} are needed, so fewer moves may be "
        "possible"
    )


def _rows(record: Record) -> Iterator[Sequence[object]]:
    if not record.get("steps"):
        yield (
            "",
            record.get("failed") or record.get("reason") or "none: the assignment is optimal",
            "",
        )
    for number, step in enumerate(record.get("steps", ()), start=1):
        by_sticky = "" if "planned_movement" in record else "yes" if step["direct"] else "no"
        yield number, step["description"], by_sticky
    for move in record.get("moved", ()):
        yield "", move["reason"], ""
    planned = record.get("planned_movement") or {"value": 0, "bound": 0}
    if planned["value"] > planned["bound"]:
        yield "", _note_on_moves(**planned), ""
    if "note" in record:
        yield "", f"note: {record['note']}", ""
    own = record.get("own_assignor", {"is_ported": True})
    if "assignor" in record and not own["is_ported"]:
        yield "", f"note: {own['description']}", ""
