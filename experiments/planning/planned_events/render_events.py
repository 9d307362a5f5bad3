"""Render a forecast of planned events as an HTML page."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kassay.experiments.planning.planned_events.event_forecast import (
    HINDSIGHT,
    AssignorCourse,
    EventForecast,
    PlannedMemberState,
    member_states,
)
from kassay.experiments.plotting.page_templates import environment
from kassay.reference.documents.csv_writer import write_csv
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import condition

_TEMPLATES = Path(__file__).parent / "templates"
_DIGITS = re.compile(r"([0-9]+)")
_MAX_MARKS = 4
"""Maximum number of marks in a cell; more moves are shown as a number."""
_TITLES = {HINDSIGHT: "Fewest moves over all rebalances"}


@dataclass(frozen=True, slots=True)
class _Cell:
    """Cell of a member and a rebalance; ``description`` lists the moved partitions."""

    load: int
    marks: int
    more: int
    given: int
    description: str


def render_events(forecast: EventForecast, group: Group, *, current: str | None) -> str:
    """Render a forecast of planned events as an HTML page. Equal forecasts give equal bytes.

    ``group`` is the group before the events. ``current`` is its assignor, whose picture is open.
    """
    clients = {client for one in forecast.rebalances for client in one.clients.values()}
    ordered = sorted(clients, key=_numbers_by_value)
    courses = [
        {
            "name": course.name,
            "title": _TITLES.get(course.name, course.name),
            "is_open": course.name in (HINDSIGHT, current),
            "course": course,
            "rows": list(_rows(forecast, course, ordered)),
        }
        for course in forecast.all_courses()
    ]
    template = environment(_TEMPLATES, autoescape=True).get_template("events.html.j2")
    return template.render(
        name=group.id or "the group",
        condition=condition(group, with_racks=True),
        forecast=forecast,
        fewest=forecast.fewest,
        is_weighted=any(one.group.is_weighted for one in forecast.rebalances),
        one_by_one=sum(forecast.fewest.one_after_the_other),
        current=next((one for one in forecast.courses if one.name == current), None),
        courses=courses,
        minutes=[f"{one.at / 60_000:.1f}" for one in forecast.rebalances],
        csv=_csv(forecast),
    )


def _numbers_by_value(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts pod-2 before pod-10."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in _DIGITS.split(name)]


def _rows(
    forecast: EventForecast, course: AssignorCourse, clients: list[str]
) -> Iterator[tuple[str, list[_Cell | None]]]:
    states = member_states(forecast.rebalances, course.assignments)
    for client in clients:
        yield client, [_cell(state, client) for state in states]


def _cell(states: Mapping[str, PlannedMemberState], client: str) -> _Cell | None:
    state = states.get(client)
    if state is None:
        return None
    number = len(state.received)
    marks = number if number <= _MAX_MARKS else 1
    parts = [f"{client}: load {state.load}"]
    parts += [f"receives {', '.join(state.received)}"] if state.received else []
    parts += [f"gives {', '.join(state.given)}"] if state.given else []
    return _Cell(state.load, marks, number - marks, len(state.given), "; ".join(parts))


def _csv(forecast: EventForecast) -> str:
    """Return the moves of each rebalance as CSV text, one column per course."""
    courses = list(forecast.all_courses())
    rows = (
        (
            one.at / 1000,
            "; ".join(one.events),
            len(one.clients),
            forecast.fewest.one_after_the_other[number],
            *(
                course.per_rebalance[number] if number < len(course.per_rebalance) else None
                for course in courses
            ),
        )
        for number, one in enumerate(forecast.rebalances)
    )
    columns = ("seconds", "events", "members", "one after the other")
    return write_csv((*columns, *(course.name for course in courses)), rows)
