"""Sphinx configuration of the documentation site; see `make site`."""

import base64
import importlib.metadata
import json
import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from pygments.lexers.special import TextLexer

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

project = "kassay"
author = "The kassay authors"
version = release = importlib.metadata.version("kassay")
html_title = f"kassay {release}"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/**",
    "experiments/notebooks/*.ipynb",
]
exclude_patterns = ["docs/images/*.py"]
default_role = "code"

html_theme = "furo"
html_show_sphinx = False
html_show_copyright = False
html_static_path = ["static"]
html_css_files = ["tables.css"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
html_math_renderer = "mathml"
# Notebooks contain their outputs; the tests execute them.
nb_execution_mode = "off"

autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_typehints = "description"
autodoc_member_order = "bysource"
napoleon_google_docstring = False


def _inline_math(translator, node):
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def _display_math(translator, node):
    translator.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def _gallery(_app, name, source):
    """Append the title, the first paragraph and the first picture of each notebook."""
    if name != "docs/notebooks":
        return
    for path in sorted((ROOT / "experiments/notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        title, text, *_ = "".join(cells[0]["source"]).removeprefix("# ").split("\n\n")
        kind, picture = next(_pictures(cells))
        source[0] += (
            f"\n## [{title}](../experiments/notebooks/{path.name})\n\n{text}\n\n"
            f'<img alt="{title}" src="data:{kind};base64,{picture}">\n'
        )


def _pictures(cells):
    """Yield the type and the content in base 64 of the pictures of a notebook."""
    for output in (output for cell in cells for output in cell.get("outputs", ())):
        for kind, content in output.get("data", {}).items():
            if kind == "image/svg+xml":
                yield kind, base64.b64encode("".join(content).encode()).decode()
            elif kind == "image/png":
                yield kind, "".join(content).replace("\n", "")


def setup(app):
    """Render formulas as MathML, diagrams as text without scripts, and the notebook gallery."""
    app.connect("source-read", _gallery)
    app.add_html_math_renderer("mathml", (_inline_math, None), (_display_math, None))
    app.add_lexer("mermaid", TextLexer)
