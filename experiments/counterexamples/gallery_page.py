"""Render a gallery of counterexamples as a self-contained HTML page."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kassay.experiments.counterexamples.gallery import Gallery, GalleryEntry
from kassay.experiments.counterexamples.shortcomings import LARGEST_FIRST, Shortcoming
from kassay.experiments.counterexamples.shrinking import size_of
from kassay.experiments.plotting.assignment_figure import AssignmentPanel, assignment_panels, plural
from kassay.experiments.plotting.page_templates import environment
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.group import Group

_TITLES = {
    Shortcoming.IMBALANCE: "misses the minimum imbalance",
    Shortcoming.MOVES: "makes unnecessary moves",
    Shortcoming.RATIO: "exceeds the minimum possible maximum load",
    Shortcoming.LIVELOCK: "does not terminate",
    Shortcoming.FAILURE: "has no valid assignment",
}
_NOT_SUBSCRIBED = "·"

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryView:
    """Values that the page template shows for one gallery entry."""

    entry: GalleryEntry
    size: str
    rows: tuple[tuple[str, tuple[str, ...]], ...]  # per member one cell per topic
    panels: tuple[AssignmentPanel, ...]
    document: str


def render_gallery(gallery: Gallery, *, about: Mapping[str, str], top: int) -> str:
    """Render a gallery as an HTML page that shows the first ``top`` entries.

    Equal galleries give equal bytes.
    """
    template = environment(_TEMPLATES, autoescape=True).get_template("gallery.html.j2")
    return template.render(
        gallery=gallery,
        title=_TITLES[gallery.options.shortcoming],
        largest_first=gallery.options.shortcoming in LARGEST_FIRST,
        about=about,
        views=[_view(entry, gallery) for entry in gallery.entries[:top]],
    )


def _view(entry: GalleryEntry, gallery: Gallery) -> EntryView:
    size = size_of(entry.group)
    title = gallery.options.assignor
    if gallery.options.shortcoming is Shortcoming.LIVELOCK:
        title += ", a repeated state"
    drawn = {title: entry.assigned, "an optimum": entry.optimum}
    return EntryView(
        entry=entry,
        size=", ".join(
            (
                plural(size.members, "member"),
                plural(size.topics, "topic"),
                plural(size.partitions, "partition"),
                f"{size.owned or 'none'} of them owned",
            )
        ),
        rows=tuple(_rows(entry.group)),
        panels=assignment_panels(entry.group, drawn, name=str(entry.group.id)),
        document=json.dumps(group_document(entry.group), ensure_ascii=False),
    )


def _rows(group: Group) -> list[tuple[str, tuple[str, ...]]]:
    rows = []
    for member in group.members:
        cells = []
        for topic in group.topics:
            owned = [str(tp.partition) for tp in member.owned if tp.topic == topic.name]
            subscribed = topic.name in member.subscription
            cells.append(" ".join(owned) or ("–" if subscribed else _NOT_SUBSCRIBED))
        rows.append((member.id, tuple(cells)))
    return rows
