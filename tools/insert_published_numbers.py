"""Insert the results of published studies into the documentation.

``python -m tools.insert_published_numbers out/study docs/results/single-groups.md`` replaces the
text between the two comments that mark the place of the numbers. The results of event streams and
those of single groups have their own places. A page with the place ``headline``, such as
docs/results/demo.md, gets the table in practical units instead. A study of
libraries, of groups with racks, or of other groups than those of consumers, has a place with the
name of its configuration file.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kassay.experiments.plotting.page_templates import environment
from kassay.experiments.report import TEMPLATES
from kassay.experiments.report.study_report import group_counts, studied_families, template_values
from kassay.experiments.report.study_tables import ReportTable, family_table, measure_section
from kassay.experiments.study.output_reader import StudySummary, load_summary
from kassay.experiments.study.schemas import NAMED_FAMILY
from kassay.reference.documents.files import write_text
from kassay.reference.model.errors import InputError
from tools.library_tables import library_tables

BEGIN, END = "<!-- numbers: begin -->", "<!-- numbers: end -->"
TRAJECTORIES, HEADLINE = "trajectories", "headline"
RACKS = "racks"
"""Name of the study configuration of groups with racks, and of their place on a page."""
MEASURES = ("share", "streams", "connect")
"""Names of the study configurations of other groups than those of consumers."""
LIBRARIES = ("implementations", "implementations-slow")
"""Names of the study configurations whose assignors are those of libraries."""
_GROUPS = "numbers"
_OWN_TEMPLATES = Path(__file__).parent / "templates"


def render_numbers(results: StudySummary) -> str:
    """Render the results of a study on single groups as Markdown tables."""
    return _render(results, "study.md.j2")


def render_trajectories(results: StudySummary) -> str:
    """Render the results of a study on event streams as Markdown tables."""
    return _render(results, "primary.md.j2")


def render_libraries(results: StudySummary) -> str:
    """Render the results of assignors of libraries as Markdown tables."""
    generated = [name for name in studied_families(results) if name != NAMED_FAMILY]
    is_generated = results.families["family"].isin(generated)
    families = family_table(results.families, generated)
    return _fill(
        "libraries.md.j2",
        manifest=results.manifest,
        counts=group_counts(results),
        shown=int(results.families.loc[is_generated, "compared"].sum()),
        tables=library_tables(results.outcomes),
        families=replace(families, rows=tuple(map(_with_separators, families.rows))),
    )


def _with_separators(cells: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{int(cell):,}" if cell.isdecimal() else cell for cell in cells)


def render_racks(results: StudySummary) -> str:
    """Render the results of a study on groups with racks as Markdown tables."""
    return _render(results, "racks_place.md.j2")


def render_measures(results: StudySummary) -> str:
    """Render the results of share groups, Streams applications or Connect clusters as a table."""
    section = measure_section(results, only_main=True)
    return _fill("measures_place.md.j2", measures=section, manifest=results.manifest)


def _render(results: StudySummary, template: str) -> str:
    digests = results.families.sort_values("family").to_dict("records")
    return _fill(template, digests=digests, **template_values(results))


def _fill(template: str, **values: object) -> str:
    templates = environment(_OWN_TEMPLATES, TEMPLATES, autoescape=False)
    text = templates.get_template(template).render(**values)
    return text.strip() + "\n"


def render_headline(results: StudySummary) -> str:
    """Render the table of a study in practical units as a Markdown table."""
    table = template_values(results)["headline"]
    if not isinstance(table, ReportTable):
        raise InputError("the study has no groups with results")
    return markdown_table(table.columns, table.rows)


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    r"""Render a table whose first column has names and whose other columns have numbers.

    Examples
    --------
    >>> markdown_table(["name", "n"], [["a", "1"]])
    '| name | n |\n|---|--:|\n| a | 1 |\n'
    """
    lines = [columns, *rows]
    texts = [f"| {' | '.join(cells)} |" for cells in lines]
    texts.insert(1, "|---" + "|--:" * (len(columns) - 1) + "|")
    return "\n".join(texts) + "\n"


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


def render_places(results: StudySummary, page: str) -> dict[str, str]:
    """Render the tables of a study for the places of a page, by the name of the place."""
    configuration = _place_of_configuration(results)
    if BEGIN.replace(_GROUPS, HEADLINE) in page:
        return {HEADLINE: render_headline(results)}
    if configuration in LIBRARIES and BEGIN.replace(_GROUPS, configuration) in page:
        return {configuration: render_libraries(results)}
    if configuration == RACKS and BEGIN.replace(_GROUPS, RACKS) in page:
        return {RACKS: render_racks(results)}
    if configuration in MEASURES and not results.measures.empty:
        return {configuration: render_measures(results)}
    found = {}
    if not results.outcomes.empty:
        found[_GROUPS] = render_numbers(results)
    if not results.trajectories.empty:
        found[TRAJECTORIES] = render_trajectories(results)
    return found


def _place_of_configuration(results: StudySummary) -> str:
    """Return the name of the study's configuration file without suffix, or an empty text."""
    configuration = results.manifest.get("configuration") or {}
    return Path((configuration.get("study") or {"file": ""})["file"]).stem


def main(arguments: Sequence[str]) -> int:
    """Insert the results of a study directory into a page; both paths are arguments."""
    if len(arguments) != 2:
        print("usage: python -m tools.insert_published_numbers DIR PAGE", file=sys.stderr)
        return 2
    directory, page = map(Path, arguments)
    try:
        results = load_summary(directory)
        text = page.read_text(encoding="utf-8")
        found = render_places(results, text)
        for place, table in found.items():
            text = replace_numbers(text, table, where=str(page), place=place)
        write_text(page, text)
    except (InputError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
