"""Insert the results of the published study into the documentation page ``study.md``.

``python -m kassay.experiments.report.published_study out/study docs/study.md`` replaces the
text between the two comments that mark the place of the numbers. The results of event streams and
those of single groups have their own places.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from kassay.experiments.plotting.page_templates import environment
from kassay.experiments.report import TEMPLATES
from kassay.experiments.report.output_reader import StudySummary, load_summary
from kassay.experiments.report.study_report import template_values
from kassay.reference.model.errors import InputError

BEGIN, END = "<!-- numbers: begin -->", "<!-- numbers: end -->"
TRAJECTORIES = "trajectories"
_GROUPS = "numbers"


def render_numbers(results: StudySummary) -> str:
    """Render the results of a study on single groups as Markdown tables."""
    return _render(results, "study.md.j2")


def render_trajectories(results: StudySummary) -> str:
    """Render the results of a study on event streams as Markdown tables."""
    return _render(results, "primary.md.j2")


def _render(results: StudySummary, template: str) -> str:
    markdown = environment(TEMPLATES, autoescape=False)
    text = markdown.get_template(template).render(**template_values(results))
    return text.strip() + "\n"


def replace_numbers(page: str, text: str, *, where: str, place: str = _GROUPS) -> str:
    """Replace the text between the comments of a documentation page that mark a place.

    ``where`` is the page's name for error messages.
    """
    first, last = (mark.replace(_GROUPS, place) for mark in (BEGIN, END))
    before, begin, rest = page.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise InputError(f"{where} must contain {first} and, after it, {last}")
    return f"{before}{first}\n\n{text}\n{last}{after}"


def main(arguments: Sequence[str]) -> int:
    """Insert the results of a study directory into a page; both paths are arguments."""
    if len(arguments) != 2:
        print(  # noqa: T201
            "usage: python -m kassay.experiments.report.published_study DIR PAGE", file=sys.stderr
        )
        return 2
    directory, page = map(Path, arguments)
    try:
        results = load_summary(directory)
        text = page.read_text(encoding="utf-8")
        if not results.outcomes.empty:
            text = replace_numbers(text, render_numbers(results), where=str(page))
        if not results.trajectories.empty:
            found = render_trajectories(results)
            text = replace_numbers(text, found, where=str(page), place=TRAJECTORIES)
        page.write_text(text, encoding="utf-8")
    except (InputError, OSError) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
