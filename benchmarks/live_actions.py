"""Recommended actions and forecasts of groups, carried out by real consumers on a broker.

All groups of `benchmarks.live_groups` run at the same time: one run per group, for the
first action of its plan and for each change of its forecast. The table has the predicted and the
real values. It needs a JDK, Maven and the packages of the Python clients.

Usage: python -m benchmarks.live_actions [--runs 3] [--group NAME]... > table.md
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from statistics import fmean

from benchmarks.live_groups import GROUPS, TOPICS, LiveGroup, LiveRun, RealCost, Times, events_of
from kassay.experiments.planning.change_forecast import Forecast, forecast_changes
from kassay.experiments.planning.configuration_choice import HORIZON_WEEKS, recommend
from kassay.experiments.planning.plan import plan
from kassay.experiments.prediction.predict import Distribution, predict
from kassay.experiments.prediction.scenario import Configuration, Event
from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.live_cluster.librdkafka import LiveCluster
from kassay.experiments.sources.live_cluster.live_groups import import_live
from kassay.reference.model.group import Group
from tests.conformance import jars
from tests.conformance.admin import Administrator, cluster_with_topics

_HEAP_MIB = 2048
_THREADS = 80
_TIMES = Times()
_RESTARTS = 2 * HORIZON_WEEKS
"""Rolling restarts over which a recommendation compares configurations."""
_COLUMNS = ("group", "course", "event", "rebalances", "moves", "seconds without an owner", "loads")


@dataclass(slots=True, kw_only=True)
class _Course:
    """Events of one run, and their real costs. ``error`` is set if the group did not recover."""

    live: LiveGroup
    name: str
    run: LiveRun
    group: Group
    configuration: Configuration
    events: Sequence[Event]
    real: list[RealCost] = field(default_factory=list)
    error: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Return the names of the group and of the course."""
        return self.live.name, self.name

    def perform(self) -> None:
        """Carry out the events."""
        try:
            self.real.extend(map(self.run.perform, self.events))
        except (RuntimeError, TimeoutError) as error:
            self.error = str(error).split("\n")[0][:80]
        self.run.close()


def main() -> None:
    """Run the groups, and print the table and the recommendations."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live_actions")
    parser.add_argument("--runs", type=int, default=3, help="number of runs of each course")
    parser.add_argument("--group", action="append", help="name of a group, by default all")
    given = parser.parse_args()
    groups = [one for one in GROUPS if given.group is None or one.name in given.group]
    jars.start_jvm(_HEAP_MIB)
    courses: list[_Course] = []
    for number in range(given.runs):
        with cluster_with_topics(TOPICS, _TIMES.settings()) as (cluster, admin):
            courses += _run_all(groups, number, cluster.bootstrap, admin)
    print("Predicted mean and interval: real values of the runs.\n")
    print("|", " | ".join(_COLUMNS), "| outside |")
    print("|---" * (len(_COLUMNS) + 1) + "|")
    for _, found in groupby(sorted(courses, key=attrgetter("key")), attrgetter("key")):
        for row in _rows(list(found)):
            print("|", " | ".join(row), "|")
    for live in groups:
        _print_recommendations([one for one in courses if one.live is live])


def _run_all(
    groups: Sequence[LiveGroup], number: int, bootstrap: str, admin: Administrator
) -> list[_Course]:
    """Start a group for each course, then let all carry out their events."""

    def started(live: LiveGroup, course: int) -> tuple[LiveRun, Group]:
        run = LiveRun(live, f"{live.name}/{course}/{number}", bootstrap, admin, _TIMES)
        run.start()
        [found] = import_live(LiveCluster(bootstrap), [run.name], ImportOptions())
        if found.group is None:
            raise RuntimeError(f"{run.name}: {found}")
        if not live.weights:
            return run, found.group
        weights = tuple(live.weights)
        topics = (replace(one, weights=weights) for one in found.group.topics)
        return run, replace(found.group, topics=tuple(topics))

    def course_of(live: LiveGroup, index: int, forecast: Forecast | None) -> _Course:
        run, group = started(live, index)
        current = _configuration(live, group)
        if forecast is None:
            action = plan(group).actions[0]
            events = events_of(action.text, str(action.configuration), group, _TIMES)
            is_restart = action.text.startswith("restart ")
            name = "restart of one member" if is_restart else action.text.split(" (")[0]
        else:
            events = [*forecast.change.events(group, _TIMES.restart), _TIMES.restart]
            name = forecast.change.name
        return _Course(
            live=live, name=name, run=run, group=group, configuration=current, events=events
        )

    with ThreadPoolExecutor(_THREADS) as pool:
        jobs = []
        for live, (run, group) in zip(
            groups, pool.map(started, groups, [0] * len(groups)), strict=True
        ):
            found = _forecasts(live, group, samples=1)
            jobs += [(live, index, one) for index, one in enumerate([None, *found], start=1)]
            run.close()
        courses = list(pool.map(lambda job: course_of(*job), jobs))
        print(f"{time.strftime('%X')}: {len(courses)} runs, {os.getloadavg()}", file=sys.stderr)
        list(pool.map(_Course.perform, courses))
    return courses


def _configuration(live: LiveGroup, group: Group) -> Configuration:
    current = _TIMES.configured(Configuration.of(group))
    listed = tuple(live.assignor.split(","))
    return replace(current, listed=listed) if len(listed) > 1 else current


def _forecasts(live: LiveGroup, group: Group, samples: int | None = None) -> list[Forecast]:
    """Return the forecasts for the list of assignors that the members have."""
    found = forecast_changes(
        group, _configuration(live, group), restart=_TIMES.restart, samples=samples
    )
    has_list = "," in live.assignor
    return [one for one in found if has_list or not one.change.start.listed]


def _pooled(found: Sequence[Distribution]) -> Distribution:
    return Distribution.of([value for one in found for value in one.values])


def _rows(courses: Sequence[_Course]) -> Iterator[list[str]]:
    """Yield a row per event, with the predicted and the real values of all runs."""
    complete = [one for one in courses if not one.error]
    for one in courses:
        if one.error:
            yield [*one.key, one.error, "", "", "", "", ""]
    predictions = [
        predict(one.group, one.configuration, one.events, seed=seed)
        for seed, one in enumerate(complete)
    ]
    for number, event in enumerate(complete[0].events if complete else ()):
        real = [one.real[number] for one in complete]
        found = [one.events[number] for one in predictions]
        cells, outside = [], []
        for name in ("rebalances", "moves", "unowned_seconds"):
            predicted = _pooled([getattr(one.cost, name) for one in found])
            values = [getattr(one, name) for one in real]
            cells.append(f"{predicted}: {', '.join(f'{one:.4g}' for one in values)}")
            mean = fmean(values)
            is_near = predicted.contains(mean) or abs(predicted.mean - mean) <= 0.2 * mean
            if not (is_near if name == "unowned_seconds" else all(map(predicted.contains, values))):
                outside.append(name)
        ranks = [_pooled(list(one)) for one in zip(*(one.sorted_loads for one in found))]  # noqa: B905
        loads = {" ".join(map(str, one.loads)) for one in real}
        cells.append(f"{' '.join(map(str, ranks))}: {', '.join(sorted(loads))}")
        if not all(
            rank.contains(n) for one in real for rank, n in zip(ranks, one.loads, strict=True)
        ):
            outside.append("loads")
        yield [*complete[0].key, str(event), *cells, ", ".join(outside)]


def _print_recommendations(courses: Sequence[_Course]) -> None:
    """Print the real cost of each configuration over the restarts, and the recommendations."""
    complete = [one for one in courses if not one.error]
    live = courses[0].live
    recommended = {
        recommend(_forecasts(live, one.group)).configuration
        for one in {course.run.name.rpartition("/")[2]: course for course in complete}.values()
    }
    print(f"\n{live.name}: forecast recommends {', '.join(sorted(recommended))}")
    for (_, name), found in groupby(sorted(complete, key=attrgetter("key")), attrgetter("key")):
        ends = [one for one in found if one.events[-1] == _TIMES.restart]
        totals = [
            sum(cost.unowned_seconds for cost in one.real[:-1])
            + _RESTARTS * one.real[-1].unowned_seconds
            for one in ends
        ]
        loads = ", ".join(str(max(one.real[-1].loads)) for one in ends)
        if ends:
            print(f"- {name}: {', '.join(f'{one:.0f}' for one in totals)} s, load {loads}")


if __name__ == "__main__":
    main()
