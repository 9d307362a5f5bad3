"""Insert the findings into README.md and the pages in docs, and draw their figures.

``python -m tools.insert_findings`` reads each number from the tables in docs/results, which the
commands of the studies write.
"""

import textwrap
from pathlib import Path

from kassay.experiments.plotting.page_templates import environment
from kassay.reference.documents.files import write_text
from tools import findings_figures
from tools.insert_published_numbers import replace_numbers
from tools.published_tables import cell, number

ROOT = Path(__file__).parents[1]
PLACE = "findings"
PAGES = {
    "README.md": "readme_findings.md.j2",
    "docs/findings.md": "findings.md.j2",
    "docs/results/event-streams.md": "stream_assumptions.md.j2",
    "docs/share-groups.md": "share_finding.md.j2",
    "docs/streams.md": "streams_finding.md.j2",
    "docs/connect.md": "connect_finding.md.j2",
}
"""Template of the findings by page."""
SINGLE_GROUPS = ("single-groups", "Equal and mixed subscriptions")
KINDS = ("sticky | equal", "sticky | mixed")
EVENTS = "By event"
NEW_MEMBER = ("replacement", "restart-return", "scale-out")
"""Events after which a member is new."""


def page(name: str) -> str:
    """Return a page with its findings."""
    templates = environment(Path(__file__).parent / "templates", autoescape=False)
    text = templates.get_template(PAGES[name]).render(
        cell=cell,
        grouped=lambda text: f"{int(text):,}",
        measured=measured,
        share_after_new_members=share_after_new_members,
        single_groups=sum(int(number(*SINGLE_GROUPS, kind, "groups")) for kind in KINDS),
    )
    text = "\n".join(map(_wrap, text.strip().splitlines())) + "\n"
    old = (ROOT / name).read_text(encoding="utf-8")
    return replace_numbers(old, text, where=name, place=PLACE)


def measured(family: str, assignor: str, measure: str, column: str = "above the minimum") -> str:
    """Return a cell of the tables of share groups, Kafka Streams and Kafka Connect."""
    return cell("kinds", "cases have seeds", f"{family} | {assignor} | {measure}", column)


def _wrap(line: str) -> str:
    indent = "   " if line[:1].isdigit() else "  " if line.startswith("- ") else ""
    # The site reads a line that starts with % as a comment.
    text = textwrap.fill(
        line.replace(" %", "\0%"),
        120,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return text.replace("\0%", " %")


def share_after_new_members(assignor: str) -> int:
    """Return the share of unnecessary moves in events with a new member, in percent."""
    events = findings_figures.events()
    moves = {
        event: number("event-streams", EVENTS, event, "rebalances")
        * number("event-streams", EVENTS, f"{event} | {assignor}", "unnecessary moves")
        for event in events
    }
    return round(100 * sum(moves[event] for event in NEW_MEMBER) / sum(moves.values()))


def main() -> None:
    """Write the pages and the figures."""
    for name in PAGES:
        write_text(ROOT / name, page(name))
    for name, svg in findings_figures.figures().items():
        write_text(ROOT / "docs/images" / f"{name}.svg", svg)


if __name__ == "__main__":
    main()
