"""``kassay report``: write the report of a study."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from kassay.experiments.cli.application import REQUIRED, argument, option
from kassay.experiments.cli.shared_options import SparkOptions
from kassay.experiments.plotting.matplotlib_figures import Plot
from kassay.experiments.report.study_report import render
from kassay.experiments.report.study_tables import ReportTable
from kassay.experiments.study.output_reader import FileDigests, load_summary, verified_manifest
from kassay.reference.documents.files import formulas_as_text, location, write_text
from kassay.reference.model.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """Command-line options of ``kassay report``."""

    source: str = argument(REQUIRED, metavar="DIR")
    output: Path | None = option(
        None, "--output", "-o", metavar="FILE", show_default="DIR/report.html"
    )
    only: list[str] | None = option(None, metavar="NAME")
    partial: bool = option(False)


def report(options: ReportOptions, spark: SparkOptions) -> None:
    """Run ``kassay report`` with parsed options."""
    directory = location(options.source)
    if directory is None and options.output is None:
        raise typer.BadParameter(
            f"--output is required, because {options.source} is not a local directory"
        )
    is_uri = directory is None or options.source.startswith("file:")
    page = (
        options.output
        or Path(directory if is_uri and directory else options.source) / "report.html"
    )
    with _opened(options.source, directory, spark) as (opened, found):
        manifest = verified_manifest(opened, found=found, partial=options.partial)
        study_report = render(load_summary(opened, manifest))
    _write_data(study_report.items, page.with_name(f"{page.stem}-data"), options.only)
    if options.only:
        return
    texts = study_report.html, study_report.markdown
    for path, text in zip((page, page.with_suffix(".md")), texts, strict=True):
        write_text(path, text)
        typer.echo(path)


@contextmanager
def _opened(
    source: str, directory: Path | None, spark: SparkOptions
) -> Iterator[tuple[Path, FileDigests | None]]:
    """Yield a local directory with the output of a study, to which Spark copies remote output."""
    if directory is not None:
        yield directory, None
        return
    from kassay.experiments.spark.session import local_copy, spark_session

    with (
        spark_session(master=spark.master, settings=spark.settings()) as session,
        local_copy(session, source) as copy,
    ):
        yield copy


def _write_data(
    items: Mapping[str, Plot | ReportTable], directory: Path, only: list[str] | None
) -> None:
    for name in only or ():
        if name not in items:
            raise UsageError(f"--only: unknown name {name!r}; choose from {', '.join(items)}")
    for name in only or items:
        item = items[name]
        files = {f"{name}.csv": formulas_as_text(item.csv)}
        if only and isinstance(item, Plot):
            files[f"{name}.svg"] = item.svg
        for file, text in files.items():
            write_text(directory / file, text)
            if only:
                typer.echo(directory / file)
