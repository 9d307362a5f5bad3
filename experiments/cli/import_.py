"""``kassay import``: what Kafka's tools print, as group documents."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from experiments.cli import BAD_INPUT, complain, remark
from experiments.cli.documents import to_json
from experiments.sources.files import Imported, import_groups, load_metadata
from experiments.sources.join import Assume, Joining, Weights, load_subscriptions
from experiments.sources.tools import Found
from reference.codec import group_document


def import_(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Captures of kafka-consumer-groups.sh: files, directories of one moment, or -.",
            show_default=False,
        ),
    ],
    *,
    subscriptions: Annotated[
        str,
        typer.Option(
            metavar="assigned|equal|FILE",
            help="What no table shows: assigned, members have the topics they are assigned; "
            "equal, all have all; FILE, JSON of group to member, client or instance id to topics.",
        ),
    ] = Assume.ASSIGNED.value,
    metadata: Annotated[
        Path | None,
        typer.Option(
            help="Partition counts: kafka-topics.sh --describe, or kcat -L -J.", show_default=False
        ),
    ] = None,
    weights: Annotated[
        Weights, typer.Option(help="What a partition weighs: nothing else, or its lag.")
    ] = Weights.NONE,
    missing_lag: Annotated[
        int | None,
        typer.Option(min=0, help="Lag of partitions that show none; without it they are an error."),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="Group of tables that name none; by default their file or directory.",
            show_default=False,
        ),
    ] = None,
    skip_empty: Annotated[
        bool, typer.Option("--skip-empty", help="Leave out groups without members.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to a file instead of standard output."),
    ] = None,
) -> None:
    """Turn captures of real groups into group documents, one JSON line a group.

    Offsets, members and state of a group are joined. What the tables do not tell is
    filled in as the options say, and every document notes it.

    Example: `kassay import captures/ --subscriptions equal --weights lag --missing-lag 0`
    """
    known = Found() if metadata is None else load_metadata(metadata)
    joining = Joining(
        assume=Assume(subscriptions) if subscriptions in list(Assume) else Assume.ASSIGNED,
        subscriptions=None
        if subscriptions in list(Assume)
        else load_subscriptions(Path(subscriptions)),
        counts=known.counts,
        at_least=known.at_least,
        weights=weights,
        missing_lag=missing_lag,
    )
    found = import_groups(paths, joining, stdin=sys.stdin, group=group, skip_empty=skip_empty)
    lines: list[str] = []
    failed = False
    for imported in found:
        failed |= imported.error is not None
        lines.extend(_lines(imported))
    if output is None:
        sys.stdout.write("".join(lines))
    else:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text("".join(lines), encoding="utf-8")
    if failed:
        raise typer.Exit(BAD_INPUT)


def _lines(imported: Imported) -> list[str]:
    if imported.error is not None:
        complain(imported.error)
        return [to_json({"id": imported.id, "error": imported.error}) + "\n"]
    if imported.group is None:
        remark(f"skipped {imported.id!r}: {imported.skipped}")
        return []
    return [to_json(group_document(imported.group)) + "\n"]
