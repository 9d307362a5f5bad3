"""The gallery as one self-contained HTML page, in the report's style."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kassay.experiments.counterexamples.gallery import Gallery, GalleryEntry
from kassay.experiments.counterexamples.group_size import size_of
from kassay.experiments.counterexamples.shortcomings import Shortcoming
from kassay.experiments.plotting.assignment_figure import AssignmentPanel, draw_assignment
from kassay.experiments.plotting.page_templates import environment
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import leximax, loads, movement

_TITLES = {
    Shortcoming.IMBALANCE: "misses the least imbalance",
    Shortcoming.MOVES: "moves more than it must",
    Shortcoming.RATIO: "loads its fullest member the most",
    Shortcoming.LIVELOCK: "never ends",
    Shortcoming.FAILURE: "has no valid answer",
}
_ABSENT = "·"

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryView:
    """A piece as the page shows it.

    Parameters
    ----------
    piece
        The piece.
    size
        Its size, in words.
    topics
        Headings of its table: name and partitions.
    rows
        Its table: each member with a cell a topic, the partitions that it owns.
    panels
        What the assignor gave, and an optimum.
    document
        The group document, to be copied and tried.
    """

    piece: GalleryEntry
    size: str
    topics: tuple[tuple[str, int], ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    panels: tuple[AssignmentPanel, ...]
    document: str


def render_gallery(found: Gallery, *, about: Mapping[str, str], top: int) -> str:
    """Render the page. Equal galleries give equal bytes.

    Parameters
    ----------
    found
        What the hunt found.
    about
        What to say of how it was made, by name.
    top
        How many pieces to draw, the first ones.
    """
    return (
        environment(_TEMPLATES, autoescape=True)
        .get_template("gallery.html.j2")
        .render(
            found=found,
            title=_TITLES[found.hunt.shortcoming],
            about=about,
            hangings=[_hanging(piece, found) for piece in found.pieces[:top]],
        )
    )


def _hanging(piece: GalleryEntry, found: Gallery) -> EntryView:
    size = size_of(piece.group)
    never_ends = found.hunt.shortcoming is Shortcoming.LIVELOCK
    answers = [
        (
            f"{found.hunt.assignor}, a state that repeats" if never_ends else found.hunt.assignor,
            piece.given,
        ),
        ("an optimum", piece.optimum),
    ]
    longest = max(
        (load for _, given in answers if given is not None for load in given.loads().values()),
        default=0,
    )
    return EntryView(
        piece=piece,
        size=", ".join(
            (
                _plural(size.members, "member"),
                _plural(size.topics, "topic"),
                _plural(size.partitions, "partition"),
                f"{size.owned or 'none'} of them owned",
            )
        ),
        topics=tuple((topic.name, topic.partitions) for topic in piece.group.topics),
        rows=tuple(_rows(piece.group)),
        panels=tuple(
            _panel(piece.group, title, given, longest)
            for title, given in answers
            if given is not None
        ),
        document=json.dumps(group_document(piece.group), ensure_ascii=False),
    )


def _rows(group: Group) -> list[tuple[str, tuple[str, ...]]]:
    rows = []
    for member in group.members:
        cells = []
        for topic in group.topics:
            owned = [str(tp.partition) for tp in member.owned if tp.topic == topic.name]
            subscribed = topic.name in member.subscription
            cells.append(" ".join(owned) or ("–" if subscribed else _ABSENT))
        rows.append((member.id, tuple(cells)))
    return rows


def _panel(group: Group, title: str, given: Assignment, longest: int) -> AssignmentPanel:
    vector = "/".join(map(str, leximax(loads(group, given).values())))
    return AssignmentPanel(
        title=title,
        facts=f"loads {vector}, {_plural(movement(group, given), 'move')}",
        svg=draw_assignment(group, given, title=f"{group.id}, {title}", longest_bar=longest),
    )


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" + ("" if count == 1 else "s")
