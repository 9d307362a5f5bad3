"""Parameters of tests that run in ``make test``, and in ``make test-all`` only."""

import pytest


def short_and_long(short: object, *long: object) -> list[object]:
    """Return a parameter for all runs, and parameters for runs with the marker ``long``.

    A tuple has one value per parameter name.
    """
    return [short, *(_long(*value) if isinstance(value, tuple) else _long(value) for value in long)]


def _long(*values: object) -> object:
    return pytest.param(*values, marks=pytest.mark.long)
