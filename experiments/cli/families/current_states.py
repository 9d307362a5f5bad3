"""Print the current state of share groups, Streams applications and Connect clusters."""

from collections.abc import Callable, Iterator, Sequence

from kassay.experiments.cli.messages import print_note
from kassay.experiments.cli.options.output_options import Format
from kassay.experiments.cli.process_groups import GroupResult
from kassay.experiments.cli.write_results import Record, TableLayout
from kassay.experiments.planning.families.current_state import current_state
from kassay.reference.documents.family_documents import FamilyDocument
from kassay.solver.limits import SearchLimits


def family_state(
    output_format: Format, limits: SearchLimits
) -> Callable[[FamilyDocument], GroupResult]:
    """Return the function that compares the current state of one document with the optimum."""

    def process(document: FamilyDocument) -> GroupResult:
        state = current_state(document, limits=limits)
        record = state.record()
        if output_format is Format.TABLE:
            # The verdict contains the condition.
            print_note(f"{document.id}: {state.verdict}")
            del record["condition"]
        return GroupResult(record)

    return process


def _rows(record: Record) -> Iterator[Sequence[object]]:
    for name, one in record["measures"].items():
        yield name, one["value"], one["minimum"], one["bound"]


STATE_LAYOUT = TableLayout(first=("measure",), numbers=("current", "minimum", "bound"), rows=_rows)
