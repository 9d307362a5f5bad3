"""``kassay doctor``: checks of this machine, defined in `kassay.experiments.cli.environment`."""

import json
from collections.abc import Sequence

import typer

from kassay.experiments.cli.environment import Check, run_checks
from kassay.experiments.cli.group_io import NOT_REACHED, new_table, table_console
from kassay.experiments.cli.output_options import Format, OutputFormat


def doctor(output_format: OutputFormat = Format.TABLE) -> None:
    """Check whether this machine meets the requirements of kassay.

    Checks Python, packages, Java, memory, disk and network, and shows how to fix each
    problem. Exits with 1 if a check fails.

    Example: `kassay doctor`
    """
    checks = list(run_checks())
    if output_format is Format.TABLE:
        _print_table(checks)
    else:
        records = [{"name": c.name, "found": c.found, "fix": c.fix or None} for c in checks]
        indent = 2 if output_format is Format.JSON else None
        for record in [records] if output_format is Format.JSON else records:
            typer.echo(json.dumps(record, ensure_ascii=False, indent=indent))
    if not all(check.passed for check in checks):
        raise typer.Exit(NOT_REACHED)


def _print_table(checks: Sequence[Check]) -> None:
    table = new_table("", "check", "found", "fix")
    for check in checks:
        mark = "[green]ok[/green]" if check.passed else "[bold red]no[/bold red]"
        table.add_row(mark, check.name, check.found, check.fix)
    table_console().print(table)
