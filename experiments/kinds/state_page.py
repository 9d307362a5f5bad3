"""Page of the current state of a share group, Streams application or Connect cluster."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kassay.experiments.kinds.current_state import KindState
from kassay.experiments.plotting.page_templates import environment
from kassay.reference.documents.csv_writer import write_csv
from kassay.reference.documents.kind_documents import Kind

_TEMPLATES = Path(__file__).parent / "templates"
_TITLES = {
    Kind.SHARE: "Share group",
    Kind.STREAMS_GROUP: "Streams group",
    Kind.STREAMS: "Kafka Streams application",
    Kind.CONNECT: "Connect cluster",
}


@dataclass(frozen=True, slots=True)
class PageTable:
    """Table of a page; the first column has names."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]

    @property
    def csv(self) -> str:
        """Return the table as CSV text."""
        return write_csv(self.columns, self.rows)


def render_state_page(
    state: KindState,
    *,
    events: PageTable | None = None,
    recommendation: str | None = None,
    assumption: str | None = None,
) -> str:
    """Render the page of a current state, with the costs of events if they are known.

    ``assumption`` describes the simulated events. Equal states give equal bytes.
    """
    columns = tuple(dict.fromkeys(name for _, load in state.loads for name in load))
    loads = [(place, *(load.get(name, 0) for name in columns)) for place, load in state.loads]
    measures = [
        (one.name.replace("_", " "), one.value, one.minimum, one.bound) for one in state.measures
    ]
    template = environment(_TEMPLATES, autoescape=True).get_template("current_state.html.j2")
    return template.render(
        state=state,
        kind=_TITLES[state.kind],
        measures=measures,
        loads=PageTable(("name", *columns), loads),
        events=events,
        recommendation=recommendation,
        assumption=assumption,
    )
