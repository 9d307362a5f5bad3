"""``kassay verify``: check the validity and optimality of given assignments without a solver."""

from dataclasses import dataclass
from pathlib import Path

import typer

from kassay.experiments.cli.application import REQUIRED, option
from kassay.experiments.cli.groups import GroupResult, GroupSource, process_each_group
from kassay.experiments.cli.output import Format
from kassay.experiments.cli.search_options import ObjectiveOptions
from kassay.experiments.comparison.solution_check import Question, SolutionFile, check_solution
from kassay.reference.documents.input_files import STDIN
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions:
    """Command-line options of ``kassay verify``."""

    assignment: Path = option(REQUIRED)
    require_optimal: bool = option(False)
    output_format: Format = option(Format.JSONL, "--format")


def verify(options: VerifyOptions, source: GroupSource, objective: ObjectiveOptions) -> None:
    """Run ``kassay verify``; commands.md has its help."""
    if source.file == STDIN and options.assignment == STDIN:
        raise typer.BadParameter(
            "SOURCE and --assignment cannot both be standard input; give a file for one of them"
        )
    solutions = SolutionFile(options.assignment)

    def process(group: Group) -> GroupResult:
        solution = solutions.take(group)
        try:
            question = Question(group, objective.levels(group), objective.constraints(group))
        except UsageError as error:
            raise InputError(f"{group.label}: {error}") from error
        record = check_solution(question, solution)
        has_error = not record.keys().isdisjoint(("violations", "errors", "reason"))
        is_reached = record.get("infeasible", True) is True and (
            record.get("optimal") is True or not options.require_optimal
        )
        return GroupResult(record, is_reached and not has_error)

    process_each_group(source, process, options.output_format, both_readings=False)
