"""Insert the results of the published study into the documentation page ``study.md``.

``python -m kassay.experiments.report.published_study out/study docs/study.md`` replaces the
text between the two comments that mark the place of the numbers.
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


def render_numbers(results: StudySummary) -> str:
    """Render the results of a study as Markdown tables."""
    markdown = environment(TEMPLATES, autoescape=False)
    text = markdown.get_template("study.md.j2").render(**template_values(results))
    return text.strip() + "\n"


def replace_numbers(page: str, text: str, *, where: str) -> str:
    """Replace the text between the `BEGIN` and `END` comments of a documentation page.

    ``where`` is the page's name for error messages.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError(f"{where} must contain {BEGIN} and, after it, {END}")
    return f"{before}{BEGIN}\n\n{text}\n{END}{after}"


def main(arguments: Sequence[str]) -> int:
    """Insert the results of a study directory into a page; both paths are arguments."""
    if len(arguments) != 2:
        print(  # noqa: T201
            "usage: python -m kassay.experiments.report.published_study DIR PAGE", file=sys.stderr
        )
        return 2
    directory, page = map(Path, arguments)
    try:
        text = render_numbers(load_summary(directory))
        old = page.read_text(encoding="utf-8")
        page.write_text(replace_numbers(old, text, where=str(page)), encoding="utf-8")
    except (InputError, OSError) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
