"""``kassay libraries``: list and install client libraries that have assignors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import typer

from kassay.experiments.cli.application import argument, option, print_note
from kassay.experiments.cli.write_results import Format, print_records
from kassay.experiments.implementations import client_libraries as catalogue


@dataclass(frozen=True, slots=True, kw_only=True)
class LibrariesOptions:
    """Command-line options of ``kassay libraries``."""

    arguments: list[str] | None = argument(None, metavar="install LIBRARY[@VERSION]...")
    output_format: Format = option(Format.TABLE, "--format")


def libraries(options: LibrariesOptions) -> None:
    """Run ``kassay libraries`` with parsed options."""
    if options.arguments:
        _install(options.arguments)
        return
    known = catalogue.libraries()
    installed: dict[str, list[str]] = {name: [] for name in known}
    for library, version in catalogue.installed_versions():
        installed[library.name].append(version)
    records = [_record(library, installed[library.name]) for library in known.values()]
    if options.output_format is Format.TABLE:
        print_note(f"installed libraries are in {catalogue.installations()}")
    rows = list(map(_row, records))
    print_records(records, options.output_format, rows=rows, text=rows[0])


def _install(arguments: Sequence[str]) -> None:
    if arguments[0] != "install" or len(arguments) == 1:
        raise typer.BadParameter(
            f"expected: install LIBRARY[@VERSION]..., got {' '.join(arguments)!r}"
        )
    names = list(arguments[1:])
    if names == ["available"]:
        found = catalogue.libraries().values()
        known = catalogue.runtimes()
        names = [one.name for one in found if not catalogue.missing_programs(known[one.runtime])]
    for library, version in [catalogue.parse_library_version(name) for name in names]:
        print_note(f"installing {library.name} {version}")
        typer.echo(catalogue.install(library, version))


def _record(library: catalogue.Library, installed: Sequence[str]) -> dict[str, Any]:
    runtime = catalogue.runtimes()[library.runtime]
    return {
        "library": library.name,
        "title": library.title,
        "assignors": list(library.assignors),
        "versions": list(library.versions),
        "installed": list(installed),
        "needs": runtime.needs,
        "missing": catalogue.missing_programs(runtime),
    }


def _row(record: dict[str, Any]) -> dict[str, object]:
    def words(key: str) -> str:
        return ", ".join(record[key])

    versions = record["versions"]
    missing = f" (missing: {words('missing')})" if record["missing"] else ""
    return {
        "library": record["library"],
        "assignors": words("assignors"),
        "versions": f"{len(versions)}, from {versions[-1]} to {versions[0]}",
        "installed": words("installed") or "none",
        "needs": f"{record['needs']}{missing}",
    }
