"""Scripts that find accessibility faults of a page; they run in the page."""

from itertools import product
from pathlib import Path

import pytest

from tests.experiments.report.browser import Browser, axe_violations

SCREENS = pytest.mark.parametrize(
    ("width", "scheme"), list(product((1280, 390), ("light", "dark")))
)


def faults_of_page(
    browser: Browser, folder: Path, *, width: int, scheme: str = "light"
) -> list[str]:
    """Return the faults of an open page on a screen, and whether it is wider than the screen.

    The checks of axe-core, which is stored in ``folder``, run if there are no other faults.
    """
    browser.width(width)
    browser.colour_scheme(scheme)
    shown = browser.run("return document.documentElement.scrollWidth")
    faults = [f"the page has a width of {shown} pixels"] if shown > width else []
    texts = browser.run(FAINT)
    if texts["checked"] < 50:
        faults.append(f"the contrast of only {texts['checked']} texts was checked")
    faults += browser.run(FAULTS) + texts["faint"]
    return faults or axe_violations(browser, folder)


FAULTS = """
const faults = [];
const report = (what, element) => faults.push(what + ': ' + element.outerHTML.slice(0, 80));
if (!document.documentElement.lang) faults.push('no language');
if (!document.title) faults.push('no title');
for (const button of document.querySelectorAll('button, a'))
  if (!button.textContent.trim()) report('no name', button);
for (const cell of document.querySelectorAll('th')) if (!cell.scope) report('no scope', cell);
for (const region of document.querySelectorAll('[role=region], [role=img]'))
  if (!region.getAttribute('aria-label')) report('no label', region);
let level = 0;
for (const heading of document.querySelectorAll('h1, h2, h3, h4')) {
  const own = Number(heading.tagName[1]);
  if (own > level + 1) report('skips a level', heading);
  level = own;
}
return faults;
"""

FAINT = """
const parse = text => {
  const parts = text.match(/[\\d.]+/g).map(Number);
  return {rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1};
};
const over = (top, alpha, below) => top.map((value, i) => value * alpha + below[i] * (1 - alpha));
const family = element => {
  const found = [];
  for (let one = element; one; one = one.parentElement) found.unshift(one);
  return found;
};
const behind = element => family(element).reduce((below, one) => {
  const {rgb, alpha} = parse(getComputedStyle(one).backgroundColor);
  return over(rgb, alpha, below);
}, [255, 255, 255]);
const luminance = rgb => {
  const [red, green, blue] = rgb.map(value => value / 255).map(
    value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const contrast = (one, other) => {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
};
const unseen = 'svg, script, style, template, noscript';
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const faint = [];
let checked = 0;
while (texts.nextNode()) {
  const text = texts.currentNode, element = text.parentElement;
  if (!text.data.trim() || element.closest(unseen) || !element.checkVisibility()) continue;
  if (getComputedStyle(element).visibility !== 'visible') continue;
  const below = behind(element), {rgb, alpha} = parse(getComputedStyle(element).color);
  const opacity = family(element).reduce((all, one) => all * getComputedStyle(one).opacity, 1);
  const ratio = contrast(over(rgb, alpha * opacity, below), below);
  checked += 1;
  if (ratio < 4.5) faint.push(`${ratio.toFixed(2)}: ${element.tagName} ${text.data.trim()}`);
}
return {checked, faint};
"""
