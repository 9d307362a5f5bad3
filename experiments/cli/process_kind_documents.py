"""Define how the commands process documents of share groups, Streams and Connect."""

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import typer

from kassay.experiments.cli.application import print_note
from kassay.experiments.cli.process_groups import GroupResult, OtherKinds
from kassay.experiments.cli.write_results import (
    Format,
    Record,
    TableLayout,
    cell,
    without_control_characters,
)
from kassay.experiments.implementations.assignor_names import kind_of_assignor, shown_name
from kassay.experiments.implementations.run_assignor import run_on_document
from kassay.experiments.kinds.group_kind import ForecastFunction, ForecastRequest, KindComparison
from kassay.experiments.kinds.registry import KINDS, compare_assignor
from kassay.experiments.planning import kind_plan
from kassay.experiments.planning.render_plans import PLAN_PAGE
from kassay.reference.documents.kind_documents import Kind, KindDocument
from kassay.reference.model.errors import InputError
from kassay.solver.limits import SearchLimits


def _label(document: KindDocument) -> dict[str, object]:
    return {"id": document.id, "kind": str(document.kind)}


def assigned_documents(name: str) -> OtherKinds:
    """Define how ``kassay assign`` processes share groups, Streams and Connect."""

    def process(document: KindDocument) -> GroupResult:
        result = run_on_document(document, name)
        record: dict[str, object] = {
            "id": document.id,
            "assignor": shown_name(name),
            "answer": result.answer,
        }
        if result.livelock is not None:
            record |= {"terminated": False, "reason": result.livelock}
        elif result.failed is not None:
            record |= {"failed": result.failed, "reason": result.reason}
        return GroupResult(record, reached=result.answer is not None)

    layout = TableLayout(first=("place",), numbers=(), last=("assigned",), rows=_answer_rows)
    return OtherKinds(process=process, layout=layout, kind=kind_of_assignor(name))


def _answer_rows(record: Record) -> Iterator[Sequence[object]]:
    answer = record["answer"]
    if answer is None:
        yield "", record.get("failed") or record["reason"]
        return
    for number, step in enumerate(answer.get("steps", ())):
        for worker, assigned in step["state"].items():
            yield f"step {number}: {worker}", json.dumps(assigned)
    for place, assigned in (answer.get("members") or answer.get("processes") or {}).items():
        yield place, json.dumps(assigned)


def compared_documents(
    names: Sequence[str], limits: SearchLimits, *, has_levels: bool = False
) -> OtherKinds:
    """Define how ``kassay compare`` processes share groups, Streams and Connect."""
    layout = TableLayout(
        first=("assignor", "step", "measure"),
        numbers=("value", "minimum", "optimum"),
        last=("result",),
        rows=_measure_rows,
    )
    kind = kind_of_assignor(names[0])
    if has_levels and kind is not Kind.CONSUMER:
        text = f"documents of kind {str(kind)!r} have fixed levels; remove the options for levels"
        raise typer.BadParameter(text)

    def process(document: KindDocument) -> GroupResult:
        entries = [_entry(document, name, limits) for name in names]
        reached = all(entry["states"] is not None for entry in entries)
        return GroupResult({**_label(document), "comparisons": entries}, reached=reached)

    return OtherKinds(process=process, layout=layout, kind=kind)


def _entry(document: KindDocument, name: str, limits: SearchLimits) -> dict[str, object]:
    result, compared = compare_assignor(document, name, limits=limits)
    if result.answer is None:
        failed = result.livelock or result.failed
        return {"assignor": name, "states": None, "failed": failed, "reason": result.reason}
    return {"assignor": name, "states": [_state(one) for one in compared]}


def _state(compared: KindComparison) -> dict[str, object]:
    measures = {
        one.name: {
            key: value for key, value in asdict(one).items() if key != "name" and value is not None
        }
        for one in compared.measures
    }
    state: dict[str, object] = {} if compared.step is None else {"step": compared.step}
    state["measures"] = measures
    state["unneeded"] = [
        {"partition": list(move.partition), "from": list(move.owners), "to": move.member}
        for move in compared.unnecessary
    ]
    if compared.invalid:
        state["invalid"] = list(compared.invalid)
    return state


def _measure_rows(record: Record) -> Iterator[Sequence[object]]:
    for entry in record["comparisons"]:
        if entry["states"] is None:
            yield entry["assignor"], "", "", "", "", "", f"{entry['failed']}: {entry['reason']}"
            continue
        for state in entry["states"]:
            for name, one in state["measures"].items():
                numbers = (one["value"], one.get("minimum", "–"), one.get("optimum", "–"))
                yield entry["assignor"], state.get("step", ""), name, *numbers, _verdict(one)
            for text in state.get("invalid", ()):
                yield entry["assignor"], state.get("step", ""), "", "", "", "", f"invalid: {text}"


def _verdict(measure: Record) -> str:
    if "minimum" not in measure:
        return "minimum unknown"
    if measure["value"] > measure["minimum"]:
        return "above the minimum"
    return "minimum" if measure["minimum"] == measure["bound"] else "minimum not proven"


def plans_of_documents(
    output_format: Format, limits: SearchLimits, *, source: Path, output: Path | None = None
) -> OtherKinds:
    """Define how ``kassay plan`` processes share groups, Streams and Connect."""

    def process(document: KindDocument) -> GroupResult:
        plan, files = kind_plan.plan_kind(document, limits=limits), {}
        record, file = plan.record(), shlex.quote(str(source))
        selected = "" if document.id is None else f" --group {shlex.quote(document.id)}"
        commands = [f"kassay forecast {file}{selected} --format table"]
        if KINDS[document.kind].forecast is None:
            commands = []
        if output is None:
            commands.insert(0, f"kassay plan {file}{selected} -o plan")
        else:
            events = _events(document, limits)
            more = {key: events[key] for key in ("settings", "recommendation") if key in events}
            files = {
                PLAN_PAGE: kind_plan.render_kind_plan(
                    plan, kind_plan.PAGE, commands=commands, **events
                ),
                "plan.json": json.dumps({**record, **more}, indent=2) + "\n",
                "ticket.md": kind_plan.render_kind_plan(plan, kind_plan.TICKET, commands=commands),
            }
        if output_format is Format.TABLE:
            text = kind_plan.render_kind_plan(plan, kind_plan.TEXT, commands=commands)
            typer.echo(without_control_characters(text), nl=False)
            del record["condition"]  # The verdict contains it.
        return GroupResult(record, files=files)

    return OtherKinds(process=process, layout=TableLayout(rows=lambda _: ()), output=output)


def _events(document: KindDocument, limits: SearchLimits) -> Record:
    """Return the forecast of a document as JSON, with recommendation and assumptions."""
    kind, request = KINDS[document.kind], ForecastRequest(limits=limits)
    if kind.forecast is None:
        return {}
    try:
        forecast = _forecast_record(kind.forecast, document, request, "recommendation")
    except InputError as error:
        return {"assumption": f"kassay simulates no event: {error}."}
    rows = [list(row.items())[1:] for row in _FORECAST_LAYOUT.table([forecast])]
    titles = [heading.replace("\n", " ") for heading, _ in rows[0]]
    named, label = [], ""
    for (_, setting), *cells in rows:
        label = cell(setting) or label
        named.append((label, *(cell(value) for _, value in cells)))
    return {**forecast, "events": kind_plan.PageTable(titles, named), "assumption": kind.assumption}


def forecasts_of_documents(request: ForecastRequest, output_format: Format) -> OtherKinds:
    """Define how ``kassay forecast`` processes Streams and Connect."""
    key = "recommendation" if request.changes is None else "difference"

    def process(document: KindDocument) -> GroupResult:
        kind = KINDS[document.kind]
        if kind.forecast is None:
            raise InputError(
                f"kassay forecast does not apply to documents of kind {str(kind.kind)!r}: "
                f"{kind.no_forecast}"
            )
        for setting in request.changes or ():
            if setting not in kind.settings:
                raise typer.BadParameter(
                    f"--set: kind {str(kind.kind)!r} has no setting {setting!r}; "
                    f"choose from {', '.join(kind.settings)}"
                )
        record = _forecast_record(kind.forecast, document, request, key)
        if output_format is Format.TABLE:
            print_note(f"{document.id}: {record[key]}")
        return GroupResult(record)

    return OtherKinds(process=process, layout=_FORECAST_LAYOUT)


def parse_settings(texts: Iterable[str]) -> dict[str, list[str]]:
    """Parse values of --set, such as ``max.warmup.replicas=2,8``, or raise a usage error."""
    values = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not value:
            raise typer.BadParameter(f"--set must be KEY=VALUE, got {text!r}")
        values[key.strip()] = [one.strip() for one in value.split(",")]
    return values


def _forecast_record(
    forecast: ForecastFunction, document: KindDocument, request: ForecastRequest, key: str
) -> Record:
    found = forecast(document, request)
    condition = document.condition
    sentence = found.sentence if condition is None else f"If {condition}: {found.sentence}"
    return {**_label(document), **found.record, key: sentence}


_OF_ONE_KIND = ("stopped\ns", "per task\ns", "probing\nmin", "state\nmoves", "fewest")
_FORECAST_LAYOUT = TableLayout(
    first=("setting", "event"),
    numbers=("rebalances", "starts", *_OF_ONE_KIND),
    optional=_OF_ONE_KIND,
    not_empty=_OF_ONE_KIND,
    rows=lambda record: KINDS[Kind(record["kind"])].event_rows(record),
)
