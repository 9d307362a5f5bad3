"""``kassay doctor``: check whether this machine meets kassay's requirements."""

from dataclasses import dataclass

import typer

from kassay.experiments.cli.machine_checks import Check, run_checks
from kassay.experiments.cli.messages import NOT_REACHED
from kassay.experiments.cli.options.output_options import Format, TableOptions, format_option
from kassay.experiments.cli.results.write_results import print_records


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorOptions(TableOptions):
    """Command-line options of ``kassay doctor``."""

    output_format: Format = format_option(Format.TABLE)


def doctor(options: DoctorOptions) -> None:
    """Check whether this machine meets the requirements of kassay.

    Imports each package, starts Java, checks memory, disk and network, and shows how to fix
    each problem. Exits with 1 if a requirement is not met. Spark is not required, but if it is
    installed, Java must be usable.

    Example: `kassay doctor`
    """
    checks = list(run_checks())
    records = [{"name": c.name, "found": c.found, "fix": c.fix or None} for c in checks]
    rows = [_row(check) for check in checks]
    print_records(records, options.output_format, rows=rows, text=4)
    if not all(check.passed for check in checks):
        raise typer.Exit(NOT_REACHED)


def _row(check: Check) -> dict[str, object]:
    mark = ("-" if check.fix else "ok") if check.passed else "no"
    return {"": mark, "check": check.name, "found": check.found, "fix": check.fix}
