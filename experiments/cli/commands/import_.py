"""``kassay import``: convert captures or live groups to group documents."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from kassay.experiments.cli.application import BAD_INPUT, argument, option, print_error, print_note
from kassay.experiments.cli.process_groups import SourceOptions, check_cluster_usage
from kassay.experiments.cli.shared_options import (
    ClusterOptions,
    SampledClusterOptions,
    read_cluster,
)
from kassay.experiments.cli.write_results import Record, error_record, json_lines
from kassay.experiments.sources import anonymize as anonymization
from kassay.experiments.sources.import_captures import (
    EmptyGroups,
    ImportedGroup,
    import_groups,
    join_imported,
    select_imported,
)
from kassay.experiments.sources.kind_captures import read_connect_cluster
from kassay.experiments.sources.weight_windows import append_sample
from kassay.reference.documents.files import write_text
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportCommandOptions:
    """Command-line options of ``kassay import``."""

    paths: list[Path] | None = argument(None, metavar="PATH...")
    group: list[str] | None = option(None, show_default="all groups")
    connect_url: str | None = option(None, metavar="URL")
    skip_empty: bool = option(False)
    anonymize: bool = option(False)
    names: Path | None = option(None, metavar="FILE")
    append: Path | None = option(None, metavar="FILE")
    output: Path | None = option(
        None, "--output", "-o", metavar="FILE", show_default="standard output"
    )


def import_(
    options: ImportCommandOptions, source_data: SourceOptions, cluster: SampledClusterOptions
) -> None:
    """Run ``kassay import`` with parsed options."""
    groups = list(options.group or ())
    _check_usage(options, cluster, source_data)
    known = source_data.import_options()
    empty = EmptyGroups.SKIP if options.skip_empty else EmptyGroups.KEEP
    if options.connect_url is not None:
        document = read_connect_cluster(
            options.connect_url, timeout=cluster.timeout, id=source_data.name
        )
        imported = iter([ImportedGroup.of_document(document.id, document)])
    elif cluster.bootstrap_server is None:
        imported = import_groups(
            options.paths or (), known, stdin=sys.stdin, empty=empty, is_joined=True
        )
        if groups:
            imported = select_imported(imported, groups, source="the input")
        if known.together:
            imported = join_imported(imported)
    else:
        imported = read_cluster(cluster, groups, known, empty=empty)
    if options.append is None:
        _write(imported, options)
    else:
        _append(options.append, imported, cluster)


def _append(file: Path, imported: Iterable[ImportedGroup], cluster: ClusterOptions) -> None:
    from kassay.experiments.sources.live_cluster.librdkafka import LiveCluster

    found = list(imported)
    topics = {
        topic.name: topic.partitions for one in found if one.group for topic in one.group.topics
    }
    live = LiveCluster(cluster.bootstrap_server or "", cluster.settings(), timeout=cluster.timeout)
    ends = live.end_offsets([(name, n) for name, count in topics.items() for n in range(count)])
    append_sample(file, ends, cluster=live.cluster_id())
    if errors := [one.error for one in found if one.error is not None]:
        raise InputError("; ".join(errors))


def _check_usage(
    options: ImportCommandOptions, cluster: SampledClusterOptions, source_data: SourceOptions
) -> None:
    if options.names is not None and not options.anonymize:
        raise typer.BadParameter("--names requires --anonymize")
    if options.append is not None and cluster.bootstrap_server is None:
        raise typer.BadParameter("--append requires --bootstrap-server")
    if options.connect_url is not None:
        if options.paths or cluster.bootstrap_server is not None:
            raise typer.BadParameter(
                "--connect-url cannot be combined with PATH or --bootstrap-server; omit one"
            )
        return
    check_cluster_usage("PATH", bool(options.paths), cluster, source_data)


def _write(imported: Iterator[ImportedGroup], options: ImportCommandOptions) -> None:
    found = list(imported)
    if not found:
        print_note("the input contains no group")
    for one in found:
        if one.unused is not None:
            print_note(one.unused)
        if one.skipped is not None:
            print_note(f"skipped {one.id!r}: {one.skipped}")
    documents = _anonymous(found, options.names) if options.anonymize else _documents(found)
    text = json_lines(documents)
    if options.output is None:
        sys.stdout.write(text)
    else:
        write_text(options.output, text)
    # Only documents of consumer groups can be anonymized.
    if any(one.error is not None and (options.anonymize or not one.document) for one in found):
        raise typer.Exit(BAD_INPUT)


def _documents(imported: Iterable[ImportedGroup]) -> Iterator[Record]:
    for one in imported:
        if one.document is not None:
            yield one.document.content
        elif one.error is not None:
            yield error_record(one.id, one.error)
        elif one.group is not None:
            yield group_document(one.group)


def _anonymous(imported: Sequence[ImportedGroup], names: Path | None) -> Iterator[Record]:
    for one in imported:
        if one.error is not None:
            print_error(one.error)
    groups, new_names = anonymization.anonymize([one.group for one in imported if one.group])
    if names is not None:
        write_text(names, json.dumps(new_names, ensure_ascii=False, indent=2) + "\n")
    return map(group_document, groups)
