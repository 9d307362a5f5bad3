"""Scripts that find accessibility faults of a page; they run in the page."""

from itertools import product
from pathlib import Path

import pytest

from tests.experiments.report.browser import PAPER_WIDTH, Browser, axe_violations

SCREENS = pytest.mark.parametrize(
    ("width", "scheme"), [*product((1280, 390), ("light", "dark")), (PAPER_WIDTH, "print")]
)


def faults_of_page(
    browser: Browser, folder: Path, *, width: int, scheme: str = "light"
) -> list[str]:
    """Return the faults of an open page on a screen or on paper, and whether it is wider.

    The checks of axe-core, which is stored in ``folder``, run if there are no other faults.
    """
    browser.width(width)
    (browser.medium if scheme == "print" else browser.colour_scheme)(scheme)
    shown = browser.run("return document.documentElement.scrollWidth")
    faults = [f"the page has a width of {shown} pixels"] if shown > width else []
    texts = browser.run(FAINT)
    if texts["checked"] < 50:
        faults.append(f"the contrast of only {texts['checked']} texts was checked")
    faults += browser.run(FAULTS) + texts["faint"] + browser.run(OVERLAPS)
    if scheme == "print":
        browser.medium("")
    return faults or axe_violations(browser, folder)


FAULTS = (Path(__file__).parent / "faults.js").read_text(encoding="utf-8")
OVERLAPS = (Path(__file__).parent / "overlaps.js").read_text(encoding="utf-8")
FAINT = (Path(__file__).parent / "faint_texts.js").read_text(encoding="utf-8")
