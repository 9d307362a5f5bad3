"""``kassay import`` and ``kassay anonymize``: write group documents."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import typer

from kassay.experiments.cli.option_groups import argument, option
from kassay.experiments.cli.output import error_record, json_line, write_text
from kassay.experiments.cli.run_control import BAD_INPUT, print_note
from kassay.experiments.cli.source_options import (
    SampledClusterOptions,
    SourceOptions,
    check_cluster_usage,
    group_file_argument,
    read_cluster,
    read_valid_groups,
)
from kassay.experiments.sources import anonymize as anonymization
from kassay.experiments.sources.capture_files import (
    EmptyGroups,
    ImportedGroup,
    import_groups,
    join_imported,
)
from kassay.experiments.sources.connect_rest import read_connect_cluster
from kassay.reference.documents.json_codec import group_document


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportCommandOptions:
    """Command-line options of ``kassay import``."""

    paths: list[Path] | None = argument(
        None,
        "Captures of kafka-consumer-groups.sh, kafka-share-groups.sh or kafka-streams-groups.sh, "
        "REST answers of Kafka Connect, or group documents: files, directories with captures taken "
        "at the same time, or - for standard input. Files may be compressed with gzip.",
        metavar="PATH...",
    )
    group: list[str] | None = option(
        None,
        "For captures: id to use for groups without an id. For a cluster: id of a group to read, "
        "repeatable.",
        show_default="captures: the file name; cluster: all groups",
    )
    connect_url: str | None = option(
        None,
        "REST interface of a worker of a Kafka Connect cluster to read, such as "
        "http://worker:8083.",
        metavar="URL",
    )
    skip_empty: bool = option(False, "Skip groups without members.")
    output: Path | None = option(
        None,
        "File to write the group documents to.",
        "--output",
        "-o",
        metavar="FILE",
        show_default="standard output",
    )


def import_(
    options: ImportCommandOptions, source_data: SourceOptions, cluster: SampledClusterOptions
) -> None:
    """Convert captures of Kafka's tools, or groups of a cluster, to group documents.

    Share groups, Streams applications and Connect clusters become documents of their kind. If
    several captures contain data of one group, kassay merges them. kassay does not write to
    a cluster and joins no group. Options fill in data that the source does not contain; each
    document lists such data under "notes". Writes one JSON line per group.

    Example: `kassay import captures/ --subscriptions equal --weights lag --missing-lag 0`

    Example: `kassay import --bootstrap-server broker:9092 --group orders | kassay compare -`
    """
    groups = list(options.group or ())
    _check_usage(options, cluster, source_data, groups)
    known = source_data.import_options()
    empty = EmptyGroups.SKIP if options.skip_empty else EmptyGroups.KEEP
    if options.connect_url is not None:
        document = read_connect_cluster(
            options.connect_url, timeout=cluster.timeout, id=groups[0] if groups else None
        )
        imported = iter([ImportedGroup.of_document(document.id, document)])
    elif cluster.bootstrap_server is None:
        id = groups[0] if groups else None
        imported = import_groups(options.paths or (), known, stdin=sys.stdin, group=id, empty=empty)
        if known.together:
            imported = join_imported(imported)
    else:
        imported = read_cluster(cluster, groups, known, empty=empty)
    _write(imported, options.output)


def _check_usage(
    options: ImportCommandOptions,
    cluster: SampledClusterOptions,
    source_data: SourceOptions,
    groups: list[str],
) -> None:
    if options.connect_url is not None:
        if options.paths or cluster.bootstrap_server is not None:
            raise typer.BadParameter(
                "--connect-url cannot be combined with PATH or --bootstrap-server"
            )
        return
    check_cluster_usage("PATH", bool(options.paths), cluster, source_data)
    if cluster.bootstrap_server is None and len(groups) > 1:
        raise typer.BadParameter(
            f"--group must be given at most once with captures, got {len(groups)} times"
        )


def _write(groups: Iterator[ImportedGroup], output: Path | None) -> None:
    lines: list[str] = []
    failed, is_empty = False, True
    for imported in groups:
        is_empty = False
        if imported.document is not None:
            lines.append(json_line(imported.document.content))
        elif imported.error is not None:
            failed = True
            lines.append(json_line(error_record(imported.id, imported.error)))
        elif imported.group is None:
            print_note(f"skipped {imported.id!r}: {imported.skipped}")
        else:
            lines.append(json_line(group_document(imported.group)))
    if is_empty:
        print_note("the input contains no group")
    text = "".join(line + "\n" for line in lines)
    if output is None:
        sys.stdout.write(text)
    else:
        write_text(output, text)
    if failed:
        raise typer.Exit(BAD_INPUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnonymizeOptions:
    """Command-line options of ``kassay anonymize``."""

    file: Path = group_file_argument()
    names: Path | None = option(
        None, "Write the old and new names to this JSON file. Keep the file secret.", metavar="FILE"
    )


def anonymize(options: AnonymizeOptions) -> None:
    """Replace the names in group documents, so that the documents can be shared.

    Equal names get equal new names in all groups. Replaces the names of groups, topics,
    members, instances, clients, hosts, racks and custom assignors; removes topic ids and notes.
    Numbers are unchanged: partitions, weights, generations, capacities. The new names have the
    sort order of the old names. Assignors that depend on hash codes or topic ids can return
    another assignment for the new names.

    Example: `kassay anonymize groups.jsonl > shared.jsonl`
    """
    groups, all_valid = read_valid_groups([options.file])
    anonymous, new_names = anonymization.anonymize(groups)
    for group in anonymous:
        typer.echo(json_line(group_document(group)))
    if options.names is not None:
        write_text(options.names, json.dumps(new_names, ensure_ascii=False, indent=2) + "\n")
    if not all_valid:
        raise typer.Exit(BAD_INPUT)
