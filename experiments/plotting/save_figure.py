"""Save matplotlib figures as SVG or PNG files."""

import io
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure


def save_figure(figure: Figure, file: Path | io.StringIO) -> None:
    """Save a figure as SVG or PNG, depending on the file suffix, or as SVG to a buffer.

    Figures are saved without date and random ids. Equal figures give equal files.
    """
    with mpl.rc_context({"svg.hashsalt": "kassay", "svg.fonttype": "none"}):
        if isinstance(file, Path) and file.suffix != ".svg":
            figure.savefig(file, dpi=110)
        else:
            figure.savefig(file, format="svg", metadata={"Date": None})
