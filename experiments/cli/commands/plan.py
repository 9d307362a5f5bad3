"""``kassay plan``: write the planning report and the plan files of each group."""

import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path

import typer

from kassay.experiments.cli import application
from kassay.experiments.cli import write_results as cli_output
from kassay.experiments.cli.process_groups import ParsedGroup, SelectedGroups, consumer_groups
from kassay.experiments.cli.process_kind_documents import plans_of_documents
from kassay.experiments.cli.search_options import LimitOptions, ObjectiveOptions
from kassay.experiments.cli.shared_options import assignor_option
from kassay.experiments.implementations.run_assignor import run_until_stable
from kassay.experiments.planning.identify_assignor import installed_client
from kassay.experiments.planning.plan import Plan
from kassay.experiments.planning.plan import plan as plan_group
from kassay.experiments.planning.plan_result import check_planning_start
from kassay.experiments.planning.plan_sentences import EVEN_TOPICS, PlanArguments, verdict
from kassay.experiments.planning.render_plans import (
    TEXT,
    actions_record,
    frontier_record,
    render_plan,
    steps_record,
    write_plan,
)
from kassay.experiments.prediction.scenario import Configuration
from kassay.reference.model.assignment import rejoin
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import parts_without_effect, target_assignment
from kassay.reference.model.load_metrics import Measure, shown
from kassay.solver.objective import Movement, TopicSpread


class SummaryFormat(StrEnum):
    """Format of the plan summary on standard output."""

    TEXT = "text"
    JSONL = "jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """Command-line options of ``kassay plan``."""

    output: Path | None = cli_output.directory_option(None)
    assignor: str | None = assignor_option(
        text="Plan from the result of this assignor instead of the current assignment"
    )
    current: str | None = application.option(None)
    even_topics: bool = application.option(False)
    output_format: SummaryFormat | None = application.option(
        None, "--format", show_default="text on a terminal or without --output, else jsonl"
    )
    client: str | None = application.option(
        None,
        metavar="LIBRARY[@VERSION]",
        show_default="the library that the source shows, if it is installed",
    )

    @property
    def is_text(self) -> bool:
        """Return whether the command prints the summary as text instead of JSON."""
        if self.output_format is None:
            return self.output is None or sys.stdout.isatty()
        return self.output_format is SummaryFormat.TEXT


def plan(
    options: PlanOptions,
    source: SelectedGroups,
    objective: ObjectiveOptions,
    limits: LimitOptions = LimitOptions(work=30.0),
) -> None:
    """Run ``kassay plan`` with parsed options."""
    output_format = cli_output.Format.TABLE if options.is_text else cli_output.Format.JSONL
    others = plans_of_documents(
        output_format, limits.interruptible_limits(), source=source.file, output=options.output
    )
    # The text has the notes of each group.
    parsed = consumer_groups(source, output_format, others, print_notes=not options.is_text)
    _plan_groups(parsed, options, source, objective, limits)


def _plan_groups(
    parsed: Iterable[ParsedGroup],
    options: PlanOptions,
    source: SelectedGroups,
    objective: ObjectiveOptions,
    limits: LimitOptions,
) -> None:
    """Plan all groups, and exit with the code of the worst result."""
    groups, all_valid = _read(parsed, source)
    code = 0 if all_valid else application.BAD_INPUT
    names = cli_output.directory_names(one.id for one in groups) if len(groups) != 1 else [""]
    for number, (name, one) in enumerate(zip(names, groups, strict=True), 1):
        if len(groups) > 1:
            application.print_note(f"{number} of {len(groups)}: {one.id}")
        directory = None if options.output is None else options.output / name
        try:
            result = _plan(one, options, objective, limits)
        except InputError as error:
            code = application.BAD_INPUT
            typer.echo(cli_output.json_line(cli_output.error_record(one.id, error)))
        except LookupError as error:
            code = max(code, application.NOT_REACHED)
            application.print_error(str(error))
            typer.echo(cli_output.json_line({"id": one.id, "conflict": str(error)}))
        else:
            is_alone = len(groups) == 1 and not source.group
            arguments = PlanArguments(
                source=(
                    str(source.file),
                    *application.given_options(source, without=["--file", "--group", "--account"]),
                    *(["--assignor", options.assignor] if options.assignor else []),
                    *(["--current", options.current] if options.current else []),
                ),
                selected=() if is_alone else source.selection(one.id),
                objective=(
                    *application.given_options(objective, without=["--max-moves"]),
                    *([EVEN_TOPICS] if options.even_topics else []),
                ),
            )
            if directory is not None:
                write_plan(result, directory, arguments=arguments)
            if options.is_text:
                place = None if directory is None else str(directory)
                summary = render_plan(result, TEXT, directory=place, arguments=arguments)
                typer.echo(cli_output.without_control_characters(summary))
            else:
                typer.echo(_line(result, directory))
        if application.STOP.is_set():
            application.exit_interrupted(
                f"group {one.id!r} has the best plan found so far, or none"
            )
    if code:
        raise typer.Exit(code)


def _plan(
    group: Group, options: PlanOptions, objective: ObjectiveOptions, limits: LimitOptions
) -> Plan:
    for text in parts_without_effect(group):
        application.print_note(text)
    if options.even_topics and objective.level:
        raise UsageError(f"{EVEN_TOPICS} and --level cannot be combined; omit one")
    if options.even_topics:
        objective = replace(objective, level=[TopicSpread.name, "imbalance", Movement.name])
    check_planning_start(group)
    if options.current and group.status.assignor is None:
        name = Configuration.of(group, options.current).assignor
        group = replace(group, status=replace(group.status, assignor=name))
    client = options.client or installed_client(group)
    start = group
    if options.assignor is not None:
        result = run_until_stable(group, options.assignor)
        if result.assignment is None:
            detail = f"{result.ending}: {result.detail}"
            raise InputError(f"{group.label}: {options.assignor} has no result: {detail}")
        start = rejoin(group, result.assignment)
    search = partial(
        plan_group,
        start,
        levels=objective.levels(group),
        constraints=objective.constraints(group),
        limits=limits.interruptible_limits(),
        progress=application.PROGRESS,
        client=client,
    )
    with application.PROGRESS.shown(group.label):
        return application.call_interruptibly(search, lost=f"{group.label} has no plan")


def _read(parsed_groups: Iterable[ParsedGroup], source: SelectedGroups) -> tuple[list[Group], bool]:
    """Print the errors of groups, and return the valid groups and whether all are valid."""
    groups, all_valid = [], True
    for id, parsed in parsed_groups:
        if isinstance(parsed, InputError):
            typer.echo(cli_output.json_line(cli_output.error_record(id, parsed)))
            all_valid = False
        else:
            groups.append(parsed)
    if source.group and all_valid and not groups:
        raise InputError(f"{source.file}: the selected groups have no members")
    return groups, all_valid


def _line(plan: Plan, directory: Path | None) -> str:
    target, other = target_assignment(plan.group), plan.other_reading
    record: dict[str, object] = {
        "id": plan.group.id,
        **({} if directory is None else {"directory": str(directory)}),
        **({"state": plan.group.status.state} if plan.group.status.is_rebalancing else {}),
        **({"interrupted": True} if plan.interrupted else {}),
        "verdict": verdict(plan),
        **({} if plan.condition is None else {"condition": plan.condition}),
        **({} if other is None else {"other_reading": other.verdict.record()}),
        **({} if target is None else {"target": target._asdict()}),
        "status": str(plan.solution.status),
        "makespan": {
            "current": shown(Measure.MAKESPAN, plan.current.makespan, plan.group),
            "planned": shown(Measure.MAKESPAN, plan.planned.makespan, plan.group),
        },
        "moves": plan.movement,
        "placed": plan.verdict.placed,
        "proof": plan.solution.proof_by_level(),
        "cause": None if plan.cause is None else plan.cause.record(),
        "to_do": plan.to_do.text,
        "actions": actions_record(plan),
        **({} if plan.windows is None else {"windows": asdict(plan.windows)}),
    }
    if directory is None:
        record |= {"explanation": steps_record(plan), "frontier": frontier_record(plan)}
    return cli_output.json_line(record)
