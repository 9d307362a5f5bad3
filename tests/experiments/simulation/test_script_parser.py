"""Parsing of simulation scripts, and its error messages."""

from __future__ import annotations

import pytest

from kassay.experiments.simulation.script import Action, parse_script
from kassay.reference.model.errors import InputError

GOOD = """\
topics:
  orders: {partitions: 4, rate: 10}
members:
  - {id: c, count: 2, topics: [orders]}
"""

BAD = {
    "": "bad.yaml:1: the file is empty",
    "topics: [": "bad.yaml:1: not valid YAML or JSON",
    "[1, 2]": "bad.yaml:1: the document: expected a mapping, got a list",
    "members: []": "bad.yaml:1: the document: 'topics' is missing",
    "topics: {t: 1}\n": "'members' is missing",
    "topics: {t: 1}\nmembers: []\ntopcs: {}\n": "bad.yaml:3: topcs: unknown key 'topcs'",
    "topics: {t: 1, t: 2}\nmembers: []\n": "bad.yaml:1: topics.t: the key is repeated",
    "topics: {t: -1}\nmembers: []\n": "bad.yaml:1: topics.t: must be at least 0, got -1",
    "topics: {t: yes}\nmembers: []\n": "topics.t: expected an integer, got true",
    GOOD + "until: 10\n": "bad.yaml:5: until: expected a time such as 500ms, 30s or 5m, got 10",
    GOOD + "policies: [stikcy]\n": "bad.yaml:5: policies[0]: unknown policy 'stikcy'",
    GOOD + "events:\n  - {do: crash, member: c0}\n": "bad.yaml:6: events[0]: 'at' is missing",
    GOOD + "events:\n  - {at: 1s, do: explode}\n": "events[0].do: unknown action 'explode'",
    GOOD + "events:\n  - {at: 1s, do: crash}\n": "action crash requires the key 'member'",
    GOOD + "events:\n  - {at: 1s, do: crash, member: c7}\n": "unknown member 'c7'",
    GOOD + "events:\n  - {at: 1s, do: crash, member: c0, for: 1s}\n": "unknown key 'for'",
    GOOD + "events:\n  - {at: 1s, do: grow, topic: orders, partitions: 3}\n": "must be at least 4",
    GOOD + "events:\n  - {at: 1s, do: subscribe, member: c0, topics: [x]}\n": "unknown topic",
    GOOD + "events:\n  - {at: 1s, do: join, member: {id: c0, topics: []}}\n": "exists already",
    GOOD + "events:\n  - {at: 1s, do: leave, member: c0, every: 5s}\n": "must be given together",
    "topics: {t: 9999999999999999999999}\nmembers: []\n": (
        "bad.yaml:1: topics.t: must be at most 1000000, got 9999999999999999999999"
    ),
    GOOD
    + "events:\n  - {at: 1s, do: grow, topic: orders, partitions: 2000000}\n": "at most 1000000",
    GOOD + "seed: 99999999999\n": "seed: must be at most 2147483647, got 99999999999",
    GOOD + "settings: {heartbeat: 60s}\n": "heartbeat must be above 0 and below session",
    GOOD + "settings: {commit: 0}\n": "commit must be above 0 ms",
    GOOD
    + "  - {id: c1, topics: [orders]}\n": "bad.yaml:5: members[1]: member 'c1' is listed twice",
    GOOD + "  - {id: d, topics: [orders, orders]}\n": "'orders' is listed twice",
    '{"topics": {"t": 1},\n\t"members": 5}': "bad.yaml:2: members: expected a list, got 5",
}


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
