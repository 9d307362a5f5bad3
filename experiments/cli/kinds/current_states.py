"""Print the current state of share groups, Streams applications and Connect clusters."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from kassay.experiments.cli.kinds.forecasts import FORECAST_LAYOUT, forecast_document
from kassay.experiments.cli.output import Format, Record, TableLayout, write_text
from kassay.experiments.cli.process_each_group import GroupResult
from kassay.experiments.cli.run_control import print_note
from kassay.experiments.kinds.current_state import KindState, current_state
from kassay.experiments.kinds.state_page import PageTable, render_state_page
from kassay.experiments.planning.plan_output.plan_files import PLAN_PAGE
from kassay.reference.documents.kind_documents import Kind, KindDocument
from kassay.reference.model.errors import InputError
from kassay.solver.limits import SearchLimits

_RESTART_MS = 30_000
_ASSUMPTIONS = {
    Kind.CONNECT: "Simulated events: a worker is back 30 s after its stop, and the next worker of "
    "a rolling restart stops 30 s later. A rebalance takes no time.",
    Kind.STREAMS: "Simulated events: the process with the highest cost restarts or leaves, and a "
    "new process joins. A rebalance takes no time, and a process restores the state of a task "
    "within 60 s.",
}


def compare_state(
    output_format: Format,
    limits: SearchLimits,
    *,
    directories: Iterator[Path] | None = None,
) -> Callable[[KindDocument], GroupResult]:
    """Return the function that compares the current state of one document with the optimum.

    ``directories`` has one directory per document, for a page and ``plan.json``.
    """

    def process(document: KindDocument) -> GroupResult:
        directory = None if directories is None else next(directories)
        state = current_state(document, limits=limits)
        record = state.record()
        if directory is not None:
            _write_page(document, state, directory, limits)
            record["directory"] = str(directory)
        if output_format is Format.TABLE:
            # The verdict contains the condition.
            print_note(f"{document.id}: {state.verdict}")
            del record["condition"]
        return GroupResult(record)

    return process


def _write_page(
    document: KindDocument, state: KindState, directory: Path, limits: SearchLimits
) -> None:
    """Write the page of a state, with the costs of events if kassay can simulate them."""
    record, events, recommendation = state.record(), None, None
    assumption = _ASSUMPTIONS.get(document.kind)
    if assumption is not None:
        simulate = forecast_document(
            downtime_ms=_RESTART_MS,
            pause_ms=_RESTART_MS,
            assignors=(),
            limits=limits,
            output_format=Format.JSONL,
        )
        try:
            forecast = simulate(document).record
        except InputError as error:
            assumption = f"kassay simulates no event: {error}."
        else:
            recommendation = forecast["recommendation"]
            record |= {"settings": forecast["settings"], "recommendation": recommendation}
            events = _events(forecast)
    page = render_state_page(
        state, events=events, recommendation=recommendation, assumption=assumption
    )
    write_text(directory / PLAN_PAGE, page)
    write_text(directory / "plan.json", json.dumps(record, indent=2) + "\n")


def _events(forecast: Record) -> PageTable:
    """Return the costs of events, without the name of the document in each row."""
    table = FORECAST_LAYOUT.table([forecast])
    named, label = [], ""
    for _, setting, *cells in table.rows:
        label = setting or label
        named.append((label, *cells))
    titles = (*table.first[1:], *table.numbers)
    return PageTable([title.replace("\n", " ") for title in titles], named)


def _rows(record: Record) -> Iterator[Sequence[object]]:
    for name, one in record["measures"].items():
        yield name, one["value"], one["minimum"], one["bound"]


STATE_LAYOUT = TableLayout(first=("measure",), numbers=("current", "minimum", "bound"), rows=_rows)
