"""``kassay anonymize``: replace the names in group documents."""

import json
from dataclasses import dataclass
from pathlib import Path

import typer

from kassay.experiments.cli.messages import BAD_INPUT
from kassay.experiments.cli.options.option_groups import option
from kassay.experiments.cli.options.source_options import group_file_argument, read_valid_groups
from kassay.experiments.cli.results.write_results import json_line, write_text
from kassay.experiments.sources import anonymize as anonymization
from kassay.reference.documents.json_codec import group_document


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
