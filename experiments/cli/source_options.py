"""Options and reading of the commands that take groups from anywhere."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from kassay.experiments.cli import print_note
from kassay.experiments.cli.group_io import STDIN, Read, name_of, open_text
from kassay.experiments.sources.capture_files import import_groups, load_metadata, load_sizes
from kassay.experiments.sources.import_options import (
    AssumedSubscriptions,
    ImportOptions,
    WeightSource,
    load_subscriptions,
    load_weights,
)
from kassay.experiments.sources.partition_weights import apply_weights
from kassay.experiments.sources.tool_documents.document_rows import DocumentRows
from kassay.reference.documents.json_codec import read_groups
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group

LIVE = "From a running cluster"

Source = Annotated[
    Path,
    typer.Argument(
        metavar="SOURCE",
        help="Group documents, or captures of kafka-consumer-groups.sh: a file, a directory "
        "of one moment, or - for documents on standard input.",
    ),
]
Subscriptions = Annotated[
    str,
    typer.Option(
        "--subscriptions",
        metavar="assigned|equal|FILE",
        help="What no table shows: assigned, members have the topics they are assigned; "
        "equal, all have all; FILE, JSON of group to member, client or instance id to topics.",
    ),
]
Metadata = Annotated[
    Path | None,
    typer.Option(
        "--metadata",
        help="Partition counts: kafka-topics.sh --describe, or kcat -L -J.",
        show_default=False,
    ),
]
MissingLag = Annotated[
    int | None,
    typer.Option(
        "--missing-lag",
        min=0,
        help="Lag of partitions that show none; without it they are an error.",
        show_default=False,
    ),
]
WeightsFrom = Annotated[
    str,
    typer.Option(
        "--weights",
        metavar="none|lag|rate|size|FILE",
        help="What a partition weighs: nothing else, its lag, the messages appended to it "
        "within the seconds that kassay import --sample says, its bytes on disk, or what FILE "
        "says, JSON of topic to one integer a partition.",
    ),
]
Sizes = Annotated[
    Path | None,
    typer.Option(
        "--sizes",
        help="Bytes of partitions, for --weights size: what kafka-log-dirs.sh --describe printed.",
        show_default=False,
    ),
]
BootstrapServer = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="Read off this cluster; brokers are separated by commas.",
        show_default=False,
        rich_help_panel=LIVE,
    ),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        help="Client properties, TLS and SASL ones above all, as Kafka's tools take them.",
        show_default=False,
        rich_help_panel=LIVE,
    ),
]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout", min=0.1, help="Seconds to wait for each answer.", rich_help_panel=LIVE
    ),
]


def import_options(
    *,
    subscriptions: str,
    weights: str,
    sizes: Path | None,
    missing_lag: int | None,
    metadata: Path | None = None,
) -> ImportOptions:
    """Return how to fill in what sources do not tell, as options say it.

    Raises
    ------
    InputError
        If a file cannot be read.
    """
    assumed, named = subscriptions in list(AssumedSubscriptions), weights in list(WeightSource)
    if sizes is not None and weights != WeightSource.SIZE:
        raise typer.BadParameter("--sizes goes with --weights size")
    known = DocumentRows() if metadata is None else load_metadata(metadata)
    return ImportOptions(
        assumed_subscriptions=AssumedSubscriptions(subscriptions)
        if assumed
        else AssumedSubscriptions.ASSIGNED,
        subscriptions=None if assumed else load_subscriptions(Path(subscriptions)),
        partition_counts=known.partition_counts,
        minimum_counts=known.minimum_counts,
        weights=WeightSource(weights) if named else WeightSource.NONE,
        missing_lag=missing_lag,
        sizes=None if sizes is None else load_sizes(sizes),
        weight_table=None if named else load_weights(Path(weights)),
    )


def read_source(source: Path, joining: ImportOptions) -> Iterator[Read]:
    """Read group documents or captures; an error stands where a group cannot be read."""
    if source == STDIN or _holds_documents(source):
        with open_text(source) as stream:
            for id, found in read_groups(stream, name=name_of(source)):
                yield (
                    id,
                    found if isinstance(found, InputError) else _weighed(found, joining),
                )
        return
    if joining.weights is WeightSource.RATE:
        raise typer.BadParameter(
            "a rate takes a cluster: kassay import --bootstrap-server ... --weights rate"
        )
    for imported in import_groups([source], joining, skip_empty=True):
        if imported.group is not None:
            yield imported.id, imported.group
        elif imported.error is not None:
            yield imported.id, InputError(imported.error)
        else:
            print_note(f"skipped {imported.id!r}: {imported.skipped}")


def _weighed(group: Group, joining: ImportOptions) -> Group | InputError:
    try:
        return apply_weights(group, joining)
    except InputError as error:
        return error


def _holds_documents(source: Path) -> bool:
    """Whether a file holds group documents; anything else is for the importers."""
    if source.is_dir():
        return False
    text = source.read_text(encoding="utf-8", errors="replace").lstrip()
    if not text.startswith(("{", "[")):
        return False
    try:
        document, _ = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return True  # the codec says what is wrong with it
    if isinstance(document, list):
        document = document[0] if document else {}
    return isinstance(document, dict) and {"topics", "members"} <= set(document)
