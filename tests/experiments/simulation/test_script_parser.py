"""Parsing of simulation scripts, and its error messages."""

from __future__ import annotations

import pytest

from kassay.experiments.simulation.script import Action, parse_script
from kassay.reference.model.errors import InputError
from tests.stored_cases import stored_cases

GOOD = """\
topics:
  orders: {partitions: 4, rate: 10}
members:
  - {id: c, count: 2, topics: [orders]}
"""

BAD = stored_cases("invalid_scripts")


@pytest.mark.parametrize("text", BAD)
def test_an_error_names_file_line_and_field(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_script(text, "bad.yaml")
    assert str(caught.value).startswith("bad.yaml:")
    assert BAD[text] in str(caught.value)


def test_every_and_times_repeat_an_event() -> None:
    text = GOOD + "events:\n  - {at: 10s, do: restart, member: c0, for: 1s, every: 5s, times: 3}\n"
    script = parse_script(text, "good.yaml")
    assert [(event.at, event.action) for event in script.events] == [
        (10_000, Action.RESTART),
        (15_000, Action.RESTART),
        (20_000, Action.RESTART),
    ]
    assert script.measured_from == 10_000
