"""Costs of events after changes of the settings of a Streams application or Connect cluster."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

import typer

from kassay.experiments.cli.assignor_options import known_assignor
from kassay.experiments.cli.kinds.forecasts import connect_record, streams_record
from kassay.experiments.cli.kinds.other_kinds import refuse
from kassay.experiments.cli.output import Format
from kassay.experiments.cli.process_each_group import GroupResult
from kassay.experiments.cli.run_control import print_note
from kassay.experiments.kinds.connect_forecast import DELAY, forecast_connect
from kassay.experiments.kinds.streams_forecast import (
    HIGH_AVAILABILITY,
    SETTINGS,
    StreamsChange,
    forecast_streams,
)
from kassay.reference.documents.kind_documents import Kind, KindDocument
from kassay.solver.limits import SearchLimits

_CLASS = "task.assignor.class"
_STREAMS = {name.replace("_", "."): name for name in SETTINGS}
_LEAST = {"max.warmup.replicas": 1, "probing.rebalance.interval.ms": 60_000}
"""Lowest values that Kafka Streams accepts; 0 for the other settings."""
_CLASSES = {
    "HighAvailabilityTaskAssignor": HIGH_AVAILABILITY,
    "StickyTaskAssignor": "kafka-streams:sticky",
    "LegacyStickyTaskAssignor": "kafka-streams:legacy-sticky",
    "FallbackPriorTaskAssignor": "kafka-streams:fallback-prior",
}
_REASONS = {
    Kind.SHARE: "no setting changes the answer of the broker's assignor",
    Kind.STREAMS_GROUP: "no port of the broker's assignor exists; kassay compare runs it once",
}


def change_settings(
    settings: Sequence[str],
    *,
    downtime_ms: int,
    pause_ms: int,
    limits: SearchLimits,
    output_format: Format,
) -> Callable[[KindDocument], GroupResult]:
    """Return the function that compares the current settings of one document with others.

    ``settings`` are texts such as ``max.warmup.replicas=2,8``. Each combination is one change.
    """
    values = dict(map(_parse, settings))

    def process(document: KindDocument) -> GroupResult:
        if document.kind in _REASONS:
            raise refuse("what-if", document.kind, _REASONS[document.kind])
        known = (DELAY,) if document.kind is Kind.CONNECT else (*_STREAMS, _CLASS)
        for key in values:
            if key not in known:
                raise typer.BadParameter(
                    f"--set: unknown setting {key!r} of kind {str(document.kind)!r}, expected "
                    f"one of {', '.join(known)}"
                )
        if not values:
            raise typer.BadParameter(
                f"documents of kind {str(document.kind)!r} need --set with a change of "
                f"{', '.join(known)}"
            )
        if document.kind is Kind.CONNECT:
            connect = forecast_connect(
                document,
                downtime_ms=downtime_ms,
                pause_ms=pause_ms,
                delays_ms=[_integer(DELAY, text) for text in values[DELAY]],
            )
            record, sentence = connect_record(document, connect)
        else:
            changes = [*_changes(values)]
            found, text = forecast_streams(document, changes=changes, limits=limits)
            record, sentence = streams_record(document, found, text)
        if output_format is Format.TABLE:
            print_note(f"{document.id}: {sentence}")
        return GroupResult({**record, "difference": sentence})

    return process


def _parse(text: str) -> tuple[str, list[str]]:
    key, separator, value = text.partition("=")
    if not separator or not value:
        raise typer.BadParameter(f"--set must be KEY=VALUE, got {text!r}")
    return key.strip(), [one.strip() for one in value.split(",")]


def _changes(values: Mapping[str, Sequence[str]]) -> Iterator[StreamsChange]:
    for combination in product(*values.values()):
        chosen = dict(zip(values, combination, strict=True))
        assignor = _assignor(chosen.pop(_CLASS, "HighAvailabilityTaskAssignor"))
        yield StreamsChange(
            {_STREAMS[key]: _integer(key, text) for key, text in chosen.items()}, assignor
        )


def _assignor(name: str) -> str:
    """Return the assignor of a Java class, or check the name of an assignor."""
    name = _CLASSES.get(name.rpartition(".")[2], name)
    return known_assignor(name, of_each_kind=True)


def _integer(key: str, text: str) -> int:
    least = _LEAST.get(key, 0)
    if not text.isdecimal() or int(text) < least:
        raise typer.BadParameter(
            f"--set: {key} must be an integer of at least {least}, got {text!r}"
        )
    return int(text)
