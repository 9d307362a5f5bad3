"""Write the results of a survey: JSON, text table and metrics."""

import sys
from collections.abc import Iterator

import typer

from kassay.experiments.cli.messages import print_note
from kassay.experiments.cli.options.output_options import Format
from kassay.experiments.cli.results.text_tables import without_control_characters
from kassay.experiments.cli.results.write_results import (
    error_record,
    json_line,
    print_json,
    print_table,
)
from kassay.experiments.planning.survey.survey_result import Survey, SurveyedGroup

_TOTALS = {
    "idle_members": "idle members (without load)",
    "idle_members_planned": "idle members after the plans",
    "hot_members": "hot members (load above the planned maximum load)",
    "placed": "placed (partitions without an owner that get one)",
}
"""Explanations of totals."""


def survey_document(result: Survey) -> dict[str, object]:
    """Return a survey as JSON, with its totals."""
    return {
        **({"interrupted": True} if result.interrupted else {}),
        "totals": result.totals(),
        "groups": list(_records(result)),
    }


def _records(result: Survey) -> Iterator[dict[str, object]]:
    for rank, group in enumerate(result.groups, 1):
        yield {"rank": rank, **group.record()}
    for state in result.states:
        yield state.record()
    for failed in result.unsurveyed:
        yield failed.record()


def metric_rows(result: Survey) -> Iterator[dict[str, object]]:
    """Yield the values of each group for `SURVEY_METRICS`."""
    for group in result.groups:
        values = group.values() | {"gap": round(float(group.gap), 6)}
        yield {"group": group.id, **values, "failed": 0}
    for failed in result.errors:
        yield {"group": failed.id, "failed": 1}


def print_survey(result: Survey, output_format: Format | None) -> None:
    """Print the groups of a survey. The default is a table on a terminal, else JSON lines."""
    default = Format.TABLE if sys.stdout.isatty() else Format.JSONL
    chosen = output_format or default
    if chosen is Format.JSONL:
        for record in _records(result):
            typer.echo(json_line(record))
    elif chosen is Format.JSON:
        print_json([survey_document(result)])
    else:
        _print_table(result)
    for failed in result.unsurveyed:
        if failed.is_other_type:
            print_note(f"not surveyed: {failed.reason}")
        else:
            error_record(failed.id, f"{failed.id}: {failed.reason}")


def _print_table(result: Survey) -> None:
    rows = [_row(rank, group) for rank, group in enumerate(result.groups, 1)]
    if all(row["unnecessary"] is None for row in rows):
        rows = [{name: row[name] for name in row if name != "unnecessary"} for row in rows]
    print_table(rows, text=2, optional=("rank", "spread", "idle", "members", "partitions"))
    for group in result.groups:
        if group.remarks:
            typer.echo(f"* {without_control_characters(group.id or 'no id')}: {group.remarks}")
    for state in result.states:
        name = without_control_characters(state.id or "no id")
        typer.echo(f"{state.kind} {name}: {state.verdict}")
    for name, value in result.totals().items():
        words = name.replace("_", " ")
        typer.echo(f"{_TOTALS.get(name, words)}: {value:,}")


def _row(rank: int, group: SurveyedGroup) -> dict[str, object]:
    before, after = group.current, group.planned
    limit = f" to {float(group.gap_limit):.0%}" if group.gap_limit > group.gap else ""
    return {
        "group": group.id,
        "state": group.state or "",
        "rank": rank,
        "gap": f"{float(group.gap):.0%}{limit}{' *' if group.remarks else ''}",
        "maximum load": _change(group.shown(before.makespan), group.shown(after.makespan)),
        "spread": _change(group.shown(before.spread), group.shown(after.spread)),
        "idle": _change(before.idle, after.idle),
        "hot": group.hot,
        "moves": group.moves.value,
        "unnecessary": group.unnecessary_moves,
        "members": group.members,
        "partitions": group.partitions,
    }


def _change(before: float, after: float) -> str:
    return str(before) if before == after else f"{before} → {after}"
