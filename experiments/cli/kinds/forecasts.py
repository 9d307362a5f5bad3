"""Print forecasts of Connect clusters and Streams applications, a row per setting and event."""

from collections.abc import Callable, Iterator, Sequence

import typer

from kassay.experiments.cli.kinds.other_kinds import refuse
from kassay.experiments.cli.output import Format, Record, TableLayout
from kassay.experiments.cli.process_each_group import GroupResult
from kassay.experiments.cli.run_control import print_note
from kassay.experiments.implementations.library_catalogue import kind_of_assignor
from kassay.experiments.kinds.connect_forecast import ConnectForecast, forecast_connect
from kassay.experiments.kinds.streams_forecast import StreamsForecast, forecast_streams
from kassay.reference.documents.kind_documents import Kind, KindDocument
from kassay.solver.limits import SearchLimits

_REASONS = {
    Kind.SHARE: "a rebalance of a share group moves no state and stops no partition",
    Kind.STREAMS_GROUP: "no port of the broker's assignor exists; kassay compare runs it once",
}
_EVENTS = ("restart", "rolling_restart", "scale_out", "loss")


def forecast_document(
    *,
    downtime_ms: int,
    pause_ms: int,
    assignors: Sequence[str],
    limits: SearchLimits,
    output_format: Format,
) -> Callable[[KindDocument], GroupResult]:
    """Return the function that forecasts the events of one document.

    ``assignors`` are further assignors of Kafka Streams.
    """
    for name in assignors:
        if kind_of_assignor(name) is not Kind.STREAMS:
            raise typer.BadParameter(f"--assignor: {name} is no assignor of Kafka Streams")

    def process(document: KindDocument) -> GroupResult:
        if document.kind is Kind.CONNECT:
            connect = forecast_connect(document, downtime_ms=downtime_ms, pause_ms=pause_ms)
            record, sentence = connect_record(document, connect)
        elif document.kind is Kind.STREAMS:
            streams = forecast_streams(document, assignors=tuple(assignors), limits=limits)
            record, sentence = streams_record(document, *streams)
        else:
            raise refuse("forecast", document.kind, _REASONS[document.kind])
        if output_format is Format.TABLE:
            print_note(f"{document.id}: {sentence}")
        return GroupResult({**record, "recommendation": sentence})

    return process


def connect_record(
    document: KindDocument, forecast: ConnectForecast
) -> tuple[dict[str, object], str]:
    """Return the forecast of a Connect cluster as JSON, and its result in one sentence."""
    record: dict[str, object] = {
        "id": document.id,
        "kind": str(document.kind),
        "current_delay_ms": forecast.current_ms,
        "settings": [one.record() for one in forecast.settings],
    }
    return record, _with_condition(document, forecast.recommendation)


def streams_record(
    document: KindDocument, forecasts: Sequence[StreamsForecast], sentence: str
) -> tuple[dict[str, object], str]:
    """Return the forecasts of a Streams application as JSON, and their result in sentences."""
    settings = [one.record() for one in forecasts]
    record: dict[str, object] = {
        "id": document.id,
        "kind": str(document.kind),
        "settings": settings,
    }
    return record, _with_condition(document, sentence)


def _with_condition(document: KindDocument, sentence: str) -> str:
    return sentence if document.condition is None else f"If {document.condition}: {sentence}"


def _rows(record: Record) -> Iterator[Sequence[object]]:
    rows = _connect_rows if record["kind"] == Kind.CONNECT else _streams_rows
    return rows(record)


def _connect_rows(record: Record) -> Iterator[Sequence[object]]:
    for setting in record["settings"]:
        label = f"delay {setting['delay_ms'] / 1000:g} s"
        for event in _EVENTS:
            cost = setting[event]
            if cost is None:
                continue
            stopped, per_task = cost["stopped_ms"] / 1000, cost["stopped_ms_per_task"] / 1000
            yield (
                *(label, event.replace("_", " "), cost["rebalances"], cost["task_starts"]),
                *(f"{stopped:g}", f"{per_task:g}", "", "", ""),
            )
            label = ""


def _streams_rows(record: Record) -> Iterator[Sequence[object]]:
    base = record["settings"][0]["settings"]
    for setting in record["settings"]:
        changed = [f"{k} {v}" for k, v in setting["settings"].items() if base[k] != v]
        if not changed or setting["assignor"] != record["settings"][0]["assignor"]:
            changed.insert(0, setting["assignor"])
        label = ", ".join(changed)
        for event, cost in setting["events"].items():
            fewest = "–" if cost["fewest_moves"] is None else cost["fewest_moves"]
            yield (
                *(label, event, cost["rebalances"], cost["restored_copies"], "", ""),
                *(f"{cost['probing_minutes']:g}", cost["state_moves"], fewest),
            )
            label = ""


_OF_ONE_KIND = ("stopped\ns", "per task\ns", "probing\nmin", "state\nmoves", "fewest")
FORECAST_LAYOUT = TableLayout(
    first=("setting", "event"),
    numbers=("rebalances", "starts", *_OF_ONE_KIND),
    optional=_OF_ONE_KIND,
    not_empty=_OF_ONE_KIND,
    rows=_rows,
)
