"""The numbers of the published study, put into its page from the tables.

``python -m kassay.experiments.report.published_study out/study docs/study.md`` writes them
between the two
comments that mark their place; the words around them stay.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from kassay.experiments.plotting.page_templates import environment
from kassay.experiments.report import TEMPLATES
from kassay.experiments.report.study_report import context
from kassay.experiments.report.study_summary import Proportion
from kassay.experiments.report.table_reader import Tables, load_tables
from kassay.reference.model.errors import InputError

BEGIN, END = "<!-- numbers: begin -->", "<!-- numbers: end -->"


def numbers(tables: Tables) -> str:
    """Return the numbers of a study as Markdown."""
    facts = context(tables)
    made = environment(TEMPLATES, autoescape=False)
    made.filters["interval"] = in_words
    built = tables.groups[tables.groups["error"].isna()]
    families = built["family"].nunique()
    return made.get_template("study.md.j2").render(**facts, families=families).strip() + "\n"


def in_words(share: Proportion) -> str:
    r"""Say a share with its interval.

    Examples
    --------
    >>> in_words(Proportion(45, 50))
    '90\xa0% (78.6–95.7)'
    >>> in_words(Proportion(0, 0))
    '–'
    """
    if share.value is None:
        return share.percent
    low, high = share.interval
    return f"{share.percent} ({100 * low:.1f}–{100 * high:.1f})"


def put_into(page: str, text: str, *, where: str) -> str:
    r"""Put text between the two marks of a page.

    Raises
    ------
    InvalidGroupError
        If the page has not both marks, in their order.

    Examples
    --------
    >>> put_into(f"a\n{BEGIN}\nold\n{END}\nz\n", "new\n", where="page") == (
    ...     f"a\n{BEGIN}\n\nnew\n\n{END}\nz\n"
    ... )
    True
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError(f"{where}: no {BEGIN} with {END} after it")
    return f"{before}{BEGIN}\n\n{text}\n{END}{after}"


def main(arguments: Sequence[str]) -> int:
    """Write the numbers of the study in a directory into a page."""
    if len(arguments) != 2:
        print(  # noqa: T201
            "usage: python -m kassay.experiments.report.published_study DIR PAGE", file=sys.stderr
        )
        return 2
    directory, page = map(Path, arguments)
    try:
        text = numbers(load_tables(directory))
        page.write_text(
            put_into(page.read_text(encoding="utf-8"), text, where=str(page)), encoding="utf-8"
        )
    except (InputError, OSError) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
