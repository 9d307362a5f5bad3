"""``kassay survey``: rank many groups by the improvement that a plan gives."""

import operator
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import ClassVar

import typer

from kassay.experiments.cli import application
from kassay.experiments.cli import process_groups as cli_groups
from kassay.experiments.cli import write_results as cli_output
from kassay.experiments.cli.shared_options import SampledClusterOptions, read_cluster
from kassay.experiments.comparison.compare import CaseLimits
from kassay.experiments.planning import render_plans, render_surveys
from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.plan_sentences import PlanArguments
from kassay.experiments.planning.recommended_action import ToDo
from kassay.experiments.planning.survey import (
    MoveHistory,
    Survey,
    SurveyedGroup,
    SurveyResult,
    UnsurveyedGroup,
    survey_groups,
    survey_other_kind,
)
from kassay.experiments.sources.import_captures import EmptyGroups
from kassay.reference.documents.files import name_of, write_text
from kassay.reference.documents.kind_documents import KindDocument, OtherKindError
from kassay.reference.model.display import count_of
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group
from kassay.solver.limits import SearchBudget, SearchLimits

_WORK = 45.0
"""Default work of a survey. 1,000 groups, a quarter of them with weights, take 26 s."""
_SEARCHES = 8
"""Maximum number of searches per document of share groups, Streams or Connect."""
_PLAN_WORK = 20.0
"""Work for each plan that the survey writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyOptions:
    """Command-line options of ``kassay survey``."""

    rare: ClassVar = ("plans", "as_json")

    source: Path | None = application.argument(None, metavar="SOURCE")
    history: Path | None = application.option(None, metavar="DIR")
    fail_on: list[str] | None = application.option(None, metavar="CONDITION")
    output: Path | None = cli_output.directory_option(None)
    plans: int = application.option(10, min=0)
    metrics: Path | None = application.option(None)
    work: float = application.option(_WORK, min=0, metavar="UNITS")
    time_limit: float | None = application.option(None, min=0, metavar="SECONDS")
    wide: bool = application.option(False, "--wide")
    as_json: bool = application.option(False, "--json")
    output_format: cli_output.Format | None = application.option(
        None, "--format", show_default="table on a terminal, else jsonl"
    )

    def limits(self) -> SearchLimits:
        """Return the limits on work and time for all groups together."""
        return SearchLimits(work=self.work, time=self.time_limit, stop=application.STOP)


def survey(
    options: SurveyOptions, source_data: cli_groups.SourceOptions, cluster: SampledClusterOptions
) -> None:
    """Run ``kassay survey`` with parsed options."""
    cli_groups.check_cluster_usage("SOURCE", options.source is not None, cluster, source_data)
    conditions = {text.strip(): _parse_condition(text) for text in options.fail_on or ()}
    histories = {} if options.history is None else group_histories(options.history)
    groups, documents, others = _read(options.source, cluster, source_data)
    where = str(cluster.bootstrap_server if options.source is None else name_of(options.source))
    if not groups and not documents and not others:
        raise InputError(f"{where}: the input contains no group with members")
    [(repeated, count)] = Counter(group.id for group in groups).most_common(1) or [(None, 0)]
    if count > 1:
        name = "no id" if repeated is None else f"the id {repeated!r}"
        raise InputError(f"{where}: {count} groups have {name}; a survey requires different ids")
    survey_all = partial(_survey, options, groups, documents, others, histories)
    result = application.call_interruptibly(survey_all, lost="no group is surveyed")
    if options.metrics is not None:
        write_text(options.metrics, render_surveys.metrics_text(result.metric_rows()))
    if options.output is not None:
        write = partial(_write_pages, result, groups, options, options.output, source=where)
        result = application.call_interruptibly(write, lost=f"{options.output} is incomplete")
    is_wide = options.wide or not sys.stdout.isatty()
    output_format = cli_output.Format.JSON if options.as_json else options.output_format
    _print_survey(result, output_format, where=where, wide=is_wide)
    if application.STOP.is_set():
        application.exit_interrupted("the output has the groups and plans finished until then")
    _exit(result, conditions)


def group_histories(directory: Path) -> dict[str, MoveHistory]:
    """Sum the rebalances and moves of each group in the output of ``kassay history``."""
    from kassay.experiments.study.output_reader import read_table, verified_manifest

    manifest = verified_manifest(directory)
    if "history" not in manifest:
        raise InputError(f"{directory} is not a directory of kassay history --output; give one")
    columns = ["group", "movement_greedy", "unnecessary_moves"]
    rows = read_table(directory / manifest["history"] / "rebalances", columns)
    proven = rows[rows["unnecessary_moves"].notna()].groupby("group").sum()
    return {
        str(name): MoveHistory(
            rebalances=len(own),
            moves=int(proven["movement_greedy"].get(name, 0)),
            unnecessary_moves=int(proven["unnecessary_moves"].get(name, 0)),
        )
        for name, own in rows.groupby("group")
    }


def _read(
    source: Path | None, cluster: SampledClusterOptions, source_data: cli_groups.SourceOptions
) -> tuple[list[Group], list[KindDocument], list[SurveyResult]]:
    """Read consumer groups, other groups, and a result with the reason per unreadable group."""
    options = replace(source_data.import_options(), reads_lag=True)
    groups: list[Group] = []
    documents: list[KindDocument] = []
    others: list[SurveyResult] = []
    if source is not None:
        cli_groups.check_exists(source)
        parsed = cli_groups.read_source(source, options, print_notes=False)
    else:
        imported = read_cluster(cluster, (), options, empty=EmptyGroups.KEEP)
        listed = list(imported)
        others += [
            UnsurveyedGroup(id=one.id, reason=one.skipped, is_other_type=True)
            for one in listed
            if one.skipped is not None
        ]
        parsed = cli_groups.parsed_groups(listed, print_notes=False)
    for id, group in parsed:
        if isinstance(group, OtherKindError):
            documents.append(group.document)
        elif isinstance(group, InputError):
            others.append(UnsurveyedGroup(id=id, reason=str(group)))
        else:
            groups.append(group)
    return groups, documents, others


def _survey(
    options: SurveyOptions,
    groups: Sequence[Group],
    documents: Sequence[KindDocument],
    others: Sequence[SurveyResult],
    histories: dict[str, MoveHistory],
) -> Survey:
    waiting = len(groups) + len(documents)
    budget = SearchBudget.start(options.limits())
    states: list[SurveyResult] = []
    with application.PROGRESS.shown("survey"):
        for document in documents:
            if application.STOP.is_set():
                break
            application.PROGRESS(f"{len(states)} of {len(documents)} documents of other kinds")
            # Each group or document that waits has an equal share of the work.
            within = budget.part(1 / (waiting - len(states)) / _SEARCHES)
            states.append(survey_other_kind(document, limits=within.rest()))
        found = survey_groups(
            groups,
            histories=histories,
            processes=os.cpu_count() or 1,
            limits=budget.rest(),
            progress=lambda done, total: application.PROGRESS(
                f"{done} of {count_of(total, 'group')}"
            ),
        )
        results = Survey.of([*others, *states, *found])
    return replace(results, interrupted=application.STOP.is_set())


def _write_pages(
    result: Survey, groups: Sequence[Group], options: SurveyOptions, directory: Path, *, source: str
) -> Survey:
    ids = [group.id for group in groups]
    names = dict(zip(ids, cli_output.directory_names(ids), strict=True))
    by_id = dict(zip(ids, groups, strict=True))
    limits = CaseLimits(work=_PLAN_WORK, stop=application.STOP)
    known: dict[str | None, ToDo] = {}
    planned_groups = [one for one in result.groups if one.members][: options.plans]
    for rank, one in enumerate(planned_groups, 1):
        if application.STOP.is_set():
            break
        application.print_note(f"plan {rank} of {len(planned_groups)}: {one.id}")
        planned = plan(by_id[one.id], limits=limits)
        arguments = PlanArguments(selected=() if one.id is None else ("--group", one.id))
        render_plans.write_plan(planned, directory / names[one.id], arguments=arguments)
        if planned.cause == one.cause:
            known[one.id] = planned.to_do
    rows = (replace(one, to_do=known.get(one.id, one.to_do)) for one in result.groups)
    result = replace(result, groups=tuple(rows))
    pages = {id: f"{name}/{render_plans.PLAN_PAGE}" for id, name in names.items()}
    written = {id: page for id, page in pages.items() if (directory / page).is_file()}
    write_text(
        directory / "survey.html",
        render_surveys.render_survey(result, source=source, plans=written),
    )
    write_text(directory / "survey.json", render_plans.to_json(result.record()))
    return result


_QUANTITIES = (
    *("gap", "maximum-load", "spread", "idle", "hot", "moves", "placed"),
    "unnecessary-moves",
)
"""Quantities of a group that a condition of --fail-on can compare."""
_COMPARISONS = {">": operator.gt, ">=": operator.ge}
_CONDITION = re.compile(r"\s*([a-z-]+)\s*(>=|>)\s*(\d+(?:\.\d+)?)\s*(%?)\s*")


def _parse_condition(text: str) -> Callable[[SurveyedGroup], bool]:
    """Convert a condition of --fail-on to a function that tests a group.

    The limit of the gap is a percentage. All other limits are numbers.
    """
    match = _CONDITION.fullmatch(text)
    if match is None or match[1] not in _QUANTITIES:
        raise UsageError(
            f"--fail-on must be QUANTITY>LIMIT or QUANTITY>=LIMIT, where QUANTITY is one of "
            f"{', '.join(_QUANTITIES)}, got {text!r}"
        )
    quantity, comparison, number, percent = match.groups()
    if bool(percent) is not (quantity == "gap"):
        rule = "must be a percentage" if quantity == "gap" else "must not be a percentage"
        raise UsageError(f"--fail-on: the limit of {quantity} {rule}, got {text!r}")
    limit = Fraction(number) / (100 if percent else 1)
    name, compare = quantity.replace("-", "_"), _COMPARISONS[comparison]

    def is_met_by(group: SurveyedGroup) -> bool:
        readings = (group, group.other_reading)
        return any(compare(one.values()[name] or 0, limit) for one in readings if one)

    return is_met_by


def _exit(result: Survey, conditions: Mapping[str, Callable[[SurveyedGroup], bool]]) -> None:
    code = application.BAD_INPUT if result.errors else 0
    for text, is_met_by in conditions.items():
        found = [group.id for group in result.groups if is_met_by(group)]
        if found:
            code = code or application.NOT_REACHED
            others = f" and {len(found) - 1} more" if len(found) > 1 else ""
            application.print_note(f"{text}: {found[0]}{others}")
    raise typer.Exit(code)


def _print_survey(
    result: Survey, output_format: cli_output.Format | None, *, where: str, wide: bool
) -> None:
    chosen = output_format or (
        cli_output.Format.TABLE if sys.stdout.isatty() else cli_output.Format.JSONL
    )
    if chosen is cli_output.Format.TABLE:
        rows = [_row(group) for group in result.groups]
        if all(row["unnecessary"] is None for row in rows):
            rows = [{name: row[name] for name in row if name != "unnecessary"} for row in rows]
        names = ("group", "cause", "to do", "state")
        optional = list(rows[0])[len(_FIRST) :] if rows else ()
        cli_output.print_table(rows, text=names, optional=optional, is_dense=True, is_complete=wide)
        text = cli_output.without_control_characters(render_surveys.survey_text(result, where))
        typer.echo(text, nl=False)
    else:
        is_json = chosen is cli_output.Format.JSON
        cli_output.print_records([result.record()] if is_json else list(result.records()), chosen)
    for failed in result.unsurveyed:
        if failed.is_other_type:
            application.print_note(f"not surveyed: {failed.reason}")
        else:
            name = "" if failed.id is None else f"{failed.id}: "
            cli_output.error_record(failed.id, f"{name}{failed.reason}")


_FIRST = ("group", "cause", "to do", "load", "state", "lag", "helps")
"""Columns that the table has on each terminal, also on a narrow one."""


def _row(group: SurveyedGroup) -> dict[str, object]:
    before, after = group.current, group.planned
    limit = f" to {float(group.gap_limit):.0%}" if group.gap_limit > group.gap else ""
    known = (
        render_surveys.line(group.id or ""),
        group.cause_words,
        group.to_do.short if group.cause_text else "",
        _change(group.shown(before.makespan), group.shown(after.makespan)),
        group.state or "",
        "-" if group.lag is None else f"{group.lag:,}",
        group.more_members.value or "-",
    )
    return dict(zip(_FIRST, known, strict=True)) | {
        "gap": f"{float(group.gap):.0%}{limit}{' *' if group.remarks else ''}",
        "moves": group.moves.value,
        "spread": _change(group.shown(before.spread), group.shown(after.spread)),
        "idle": "unknown" if group.idle is None else _change(before.idle, after.idle),
        "hot": group.hot,
        "unnecessary": group.unnecessary_moves,
        "members": group.members,
        "partitions": group.partitions,
    }


def _change(before: float, after: float) -> str:
    return f"{before:,}" if before == after else f"{before:,} → {after:,}"
