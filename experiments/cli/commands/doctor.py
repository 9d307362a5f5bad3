"""``kassay doctor``: whether this machine has what kassay needs."""

import json
from typing import Annotated

import typer
from rich.table import Table

from kassay.experiments.cli.environment import Check, examine
from kassay.experiments.cli.group_io import NOT_REACHED, Format, table_console


def doctor(
    output: Annotated[
        Format, typer.Option("--format", help="table: to read; jsonl or json: for machines.")
    ] = Format.TABLE,
) -> None:
    """Check Python, packages, Java, memory and disk, and tell the fix for each problem.

    Exits with 1 if something is wrong.

    Example: `kassay doctor`
    """
    checks = list(examine())
    if output is Format.TABLE:
        table_console().print(_table(checks))
    else:
        records = [{"name": c.name, "found": c.found, "fix": c.fix or None} for c in checks]
        indent = 2 if output is Format.JSON else None
        for record in [records] if output is Format.JSON else records:
            typer.echo(json.dumps(record, ensure_ascii=False, indent=indent))
    if not all(check.is_well for check in checks):
        raise typer.Exit(NOT_REACHED)


def _table(checks: list[Check]) -> Table:
    table = Table("", "what", "found", "fix")
    for check in checks:
        mark = "[green]ok[/green]" if check.is_well else "[bold red]no[/bold red]"
        table.add_row(mark, check.name, check.found, check.fix)
    return table
