"""Print forecasts of Connect clusters, one row per setting and event."""

from collections.abc import Callable, Iterator, Sequence

from kassay.experiments.cli.families.other_kinds import refuse
from kassay.experiments.cli.messages import print_note
from kassay.experiments.cli.options.output_options import Format
from kassay.experiments.cli.process_groups import GroupResult
from kassay.experiments.cli.write_results import Record, TableLayout
from kassay.experiments.planning.families.connect_forecast import forecast_connect
from kassay.reference.documents.family_documents import FamilyDocument, Kind

_EVENTS = ("restart", "rolling_restart", "scale_out", "loss")


def family_forecast(
    *, downtime_ms: int, pause_ms: int, output_format: Format
) -> Callable[[FamilyDocument], GroupResult]:
    """Return the function that forecasts the events of one document."""

    def process(document: FamilyDocument) -> GroupResult:
        if document.kind is not Kind.CONNECT:
            raise refuse(
                "forecast",
                [document.kind],
                "a rebalance of its group moves no state and stops no partition",
            )
        found = forecast_connect(document, downtime_ms=downtime_ms, pause_ms=pause_ms)
        sentence = found.recommendation
        if document.condition is not None:
            sentence = f"If {document.condition}: {sentence}"
        if output_format is Format.TABLE:
            print_note(f"{document.id}: {sentence}")
        record = {
            "id": document.id,
            "kind": str(document.kind),
            "current_delay_ms": found.current_ms,
            "settings": [one.record() for one in found.settings],
            "recommendation": sentence,
        }
        return GroupResult(record)

    return process


def _rows(record: Record) -> Iterator[Sequence[object]]:
    for setting in record["settings"]:
        delay = f"{setting['delay_ms'] / 1000:g} s"
        for event in _EVENTS:
            cost = setting[event]
            yield (
                delay,
                event.replace("_", " "),
                cost["rebalances"],
                cost["task_starts"],
                f"{cost['stopped_ms'] / 1000:g}",
                f"{cost['longest_ms'] / 1000:g}",
            )
            delay = ""


FORECAST_LAYOUT = TableLayout(
    first=("setting", "event"),
    numbers=("rebalances", "starts", "stopped\ns", "per task\ns"),
    rows=_rows,
)
