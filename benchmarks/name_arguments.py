"""Command-line arguments that are names of a table: benchmarks, commands or functions."""

from argparse import ArgumentParser, Namespace
from collections.abc import Collection


def parse_with_names(parser: ArgumentParser, kind: str, known: Collection[str]) -> Namespace:
    """Parse the arguments of the command line, of which the positional ones are known names.

    The attribute ``names`` has the names; without names on the command line, all known names.
    """
    listed = "; ".join(known).replace("%", "%%")
    parser.add_argument(
        "names", nargs="*", metavar=kind.upper(), help=f"any of: {listed} (default all)"
    )
    chosen = parser.parse_args()
    for name in chosen.names:
        if name not in known:
            parser.error(f"unknown {kind} {name!r}; choose from {'; '.join(known)}")
    chosen.names = chosen.names or list(known)
    return chosen
