"""Write comparisons of the assignors and counterexamples of share groups, Streams and Connect."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import typer

from kassay.experiments.cli.output import (
    Format,
    Record,
    TableLayout,
    json_line,
    print_table,
    write_text,
)
from kassay.experiments.cli.process_each_group import GroupResult, process_kind_documents
from kassay.experiments.counterexamples.document_hunt import DocumentCounterexample, DocumentHunt
from kassay.experiments.kinds.comparison import compare_assignor
from kassay.experiments.kinds.measures import KindComparison
from kassay.reference.documents.kind_documents import Kind, KindDocument, read_kind_documents
from kassay.reference.documents.text_files import name_of, open_text
from kassay.reference.model.errors import InputError
from kassay.solver.limits import SearchLimits

_PRINTED = 10
"""Maximum number of counterexamples in the printed table."""


def compare_documents(
    file: Path, kind: Kind, names: Sequence[str], output_format: Format, limits: SearchLimits
) -> None:
    """Print the measures of each assignor on each document, with their minima."""
    layout = TableLayout(
        first=("assignor", "step", "measure"),
        numbers=("value", "minimum", "optimum"),
        last=("result",),
        rows=_measure_rows,
    )
    process = _comparison(names, limits)
    process_kind_documents(file, kind, process, output_format, layout)


def explain_documents(
    file: Path, kind: Kind, names: Sequence[str], output_format: Format, limits: SearchLimits
) -> None:
    """Print the unneeded moves of each assignor."""
    layout = TableLayout(first=("step", "unneeded move"), rows=_move_rows)
    process = _comparison(names, limits)
    process_kind_documents(file, kind, process, output_format, layout)


def kind_documents(files: Iterable[Path], kind: Kind) -> Iterator[KindDocument]:
    """Yield the documents of files. Raise InputError for the first invalid one."""
    for file in files:
        with open_text(file) as stream:
            for _, document in read_kind_documents(stream, name=name_of(file), kind=kind):
                if isinstance(document, InputError):
                    raise document
                yield document


def hunt_documents(
    search: DocumentHunt, documents: Iterable[KindDocument], directory: Path
) -> None:
    """Write the counterexamples of a search to a directory, and print the smallest ones."""
    found: list[DocumentCounterexample] = []
    write_text(directory / "found.jsonl", "")
    for one in search.search(documents):
        found.append(one)
        with (directory / "found.jsonl").open("a", encoding="utf-8") as file:
            file.write(json_line(dict(one.document.content)) + "\n")
    found.sort(key=lambda one: (one.size, one.text))
    lines = (json_line(dict(one.document.content)) + "\n" for one in found)
    write_text(directory / "groups.jsonl", "".join(lines))
    typer.echo(
        f"{search.searched} documents: {search.assignor} is above the minimum of {search.measure} "
        f"on {search.above}; different smallest documents: {len(found)}"
    )
    rows: list[Record] = [
        {
            "document": one.document.id,
            "places": one.size.places,
            "tasks": one.size.tasks,
            "value": one.value,
            "minimum": one.minimum,
        }
        for one in found[:_PRINTED]
    ]
    print_table(rows)


def _comparison(
    names: Sequence[str], limits: SearchLimits
) -> Callable[[KindDocument], GroupResult]:
    """Return the function that compares the assignors on a document."""

    def process(document: KindDocument) -> GroupResult:
        entries = [_entry(document, name, limits) for name in names]
        record = {"id": document.id, "kind": str(document.kind), "comparisons": entries}
        return GroupResult(record, reached=all(entry["states"] is not None for entry in entries))

    return process


def _entry(document: KindDocument, name: str, limits: SearchLimits) -> dict[str, object]:
    """Run an assignor on a document, and convert its comparison to JSON."""
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
        for move in compared.unneeded
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


def _move_rows(record: Record) -> Iterator[Sequence[object]]:
    for entry in record["comparisons"]:
        if entry["states"] is None:
            yield "", f"{entry['failed']}: {entry['reason']}"
            continue
        for state in entry["states"]:
            for move in state["unneeded"]:
                topic, number = move["partition"]
                owners = ", ".join(move["from"])
                yield state.get("step", ""), f"{topic}-{number}: {owners} → {move['to']}"
