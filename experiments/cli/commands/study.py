"""``kassay study``: compare assignors with the optimum on many groups with Spark."""

import time
from dataclasses import dataclass
from pathlib import Path

import typer

from kassay.experiments.cli import application, shared_options
from kassay.experiments.cli.process_groups import read_group_documents
from kassay.experiments.cli.search_options import LimitOptions
from kassay.experiments.cli.write_results import print_table
from kassay.experiments.implementations.assignor_names import shown_name
from kassay.experiments.report.study_tables import by_scope, measure_section, run_time_table
from kassay.experiments.spark.session import read_summary, spark_session
from kassay.experiments.spark.study_pipeline import read_documents, study_digest, write_study
from kassay.experiments.study.cases import ImportedCases, JoinedCases, divided_seeds
from kassay.experiments.study.configuration import StudyConfig, manifest, read_config
from kassay.experiments.study.families.all_families import STUDIED, USUAL
from kassay.experiments.study.output_reader import StudySummary, load_summary, read_manifest
from kassay.experiments.study.schemas import assignors_of, is_own
from kassay.reference.documents.files import check_writable, location, name_of, open_text
from kassay.reference.model.errors import InputError, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class StudiedGroups(LimitOptions):
    """Command-line options for a study without a configuration file."""

    groups: list[str] | None = application.option(None, metavar="FILE|URI")
    family: list[str] | None = application.option(
        None,
        text_names=STUDIED,
        callback=application.known_names("family", list(STUDIED)),
        show_default=f"{USUAL[0]} to {USUAL[-1]}",
    )
    cases: int = application.option(1000, min=0)
    assignor: list[str] | None = shared_options.assignors_option()
    compare: tuple[str, str] | None = application.option(
        None,
        metavar="NAME NAME",
        show_default="all if at most 4, else own ones, previews, and Kafka's with few moves",
    )


_DEFAULTS = StudiedGroups(work=10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions:
    """Command-line options of ``kassay study``."""

    config: Path | None = application.argument(None, metavar="CONFIG")
    output: str = application.option(application.REQUIRED, "--output", "-o", metavar="URI")


def study(
    options: StudyOptions,
    spark: shared_options.SparkOptions,
    studied: StudiedGroups = StudiedGroups(work=10.0),
) -> None:
    """Run ``kassay study`` with parsed options."""
    begin = time.perf_counter()
    if options.config is None:
        config = _config_of_options(studied)
    elif studied != _DEFAULTS:
        raise typer.BadParameter(
            "options for groups, assignors and limits cannot be combined with "
            f"{options.config}; set the values in the file"
        )
    else:
        file = options.config
        with open_text(file) as stream:
            config = read_config(stream.read(), name_of(file), directory=file.parent)
    local = {str(source): location(str(source)) for source in config.groups}
    uris = [uri for uri, path in local.items() if path is None]
    documents, all_valid = read_group_documents(filter(None, local.values()))
    if not (documents or uris or len(config.cases())):
        raise UsageError("there is no group to study: give --groups, or --cases above 0")
    results = None if uris else _finished(config, documents, options.output)
    if results is None:
        check_writable(options.output)
        session_of_study = spark_session(master=spark.master, settings=spark.settings())
        with (
            application.note_on_interrupt("the same command continues the study"),
            session_of_study as session,
        ):
            table, imported = None, ImportedCases(assignors=config.assignors)
            if documents or uris:
                table, imported = read_documents(
                    session, documents, uris, assignors=config.assignors
                )
            write_study(
                session,
                JoinedCases((imported, config.cases())),
                options.output,
                settings=config,
                documents=table,
                manifest=lambda rows: manifest(
                    config.described(imported), rows=rows, run=spark.run_record(session, begin)
                ),
            )
            results = read_summary(session, options.output)
    _print_summary(results)
    if not all_valid:
        raise typer.Exit(application.BAD_INPUT)
    failed = results.outcomes[results.outcomes[["failed", "nonterminating"]].sum(axis=1) > 0]
    streams = results.trajectories[results.trajectories["failed"] > 0]
    names = assignors_of([*failed["assignor"], *streams["assignor"]])
    own = [name for name in names if is_own(name)]
    if own:
        application.print_note(f"without a result on some groups: {', '.join(own)}")
        raise typer.Exit(application.NOT_REACHED)


def _finished(config: StudyConfig, documents: list[str], output: str) -> StudySummary | None:
    """Return the summary of a study if its output directory is complete, else None."""
    directory = location(output)
    if directory is None:
        return None
    imported = ImportedCases.of(documents, assignors=config.assignors)
    digest = study_digest(JoinedCases((imported, config.cases())), config)
    try:
        if read_manifest(directory).get("digest") == digest:
            return load_summary(directory)
    except InputError:
        pass  # the study repairs it
    return None


def _config_of_options(options: StudiedGroups) -> StudyConfig:
    names = shared_options.assignors_of_one_kind(options.assignor)
    shown, pair = [*map(shown_name, names)], options.compare or ()
    if unknown := [name for name in pair if name not in shown]:
        text = f"--compare: unknown assignor {unknown[0]!r}; choose from {', '.join(shown)}"
        raise typer.BadParameter(text)
    # Without generated groups, the family of hand-written groups is not studied, either.
    families = options.family or (USUAL if options.cases or not options.groups else ())
    return StudyConfig(
        families=divided_seeds(families, options.cases),
        seeds=options.cases,
        assignors=tuple(names),
        compared=tuple(pair),
        groups=tuple(options.groups or ()),
        limits=options.case_limits(),
    )


def _print_summary(results: StudySummary) -> None:
    medians = {row[0]: row[2] for row in run_time_table(results).rows}
    for scope, summaries in by_scope(results.outcomes).items():
        rows: list[dict[str, object]] = [
            {
                "assignor": name,
                "groups": summary.sums["groups"],
                "load\nabove\nminimum": summary.missed_maximum.percent,
                "squares\nabove\nminimum": summary.missed.percent,
                "with\nunnecessary\nmoves": summary.with_unnecessary_moves.percent,
                "moves": summary.sums["moves"],
                "unnecessary\nmoves": summary.sums["unnecessary_moves"],
                "without\nresult": summary.sums["nonterminating"] + summary.sums["failed"],
                "median\nrun time,\nms": medians.get(name, "–"),
            }
            for name, summary in summaries.items()
        ]
        print_table(rows, title=f"Kafka's assignors and the optimum: {scope}")
    measures = measure_section(results, only_main=True)
    if measures is not None:
        table = measures.table
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        print_table(rows, title="Share groups, Streams and Connect")
