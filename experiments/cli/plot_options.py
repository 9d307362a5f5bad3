"""The option that asks for a picture."""

from pathlib import Path
from typing import Annotated

import typer

FORMATS = (".svg", ".png")


def _drawable(file: Path | None) -> Path | None:
    if file is not None and file.suffix not in FORMATS:
        raise typer.BadParameter(f"the name must end in {' or '.join(FORMATS)}, got {file.name!r}")
    return file


PictureFile = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        callback=_drawable,
        metavar="FILE.svg|FILE.png",
        help="Draw it; from the second group on the file is numbered.",
        show_default=False,
    ),
]


def numbered(file: Path, number: int) -> Path:
    """Name the file of one group: the first has the name as it is.

    Examples
    --------
    >>> numbered(Path("a.svg"), 1).name, numbered(Path("a.svg"), 2).name
    ('a.svg', 'a-2.svg')
    """
    return file if number == 1 else file.with_stem(f"{file.stem}-{number}")
