"""``kassay forecast``: forecast the rebalances that a change of a group causes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kassay.experiments.cli.messages import print_note
from kassay.experiments.cli.options.option_groups import option
from kassay.experiments.cli.options.output_options import Format, TableOptions, format_option
from kassay.experiments.cli.options.source_options import GroupSource
from kassay.experiments.cli.process_groups import GroupResult, process_groups
from kassay.experiments.cli.write_results import Record, TableLayout
from kassay.experiments.planning.forecast import Forecast, RestartSettings, current_assignor
from kassay.experiments.planning.forecast import (
    forecast as forecast_changes,
)
from kassay.experiments.planning.forecast_recommendation import Criterion, Recommendation, recommend
from kassay.experiments.planning.preparation.identify_assignor import identify_assignor
from kassay.experiments.simulation.simulation import SegmentCost
from kassay.reference.model.group import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastOptions(TableOptions):
    """Command-line options of ``kassay forecast``."""

    assignor: list[str] | None = option(
        None,
        "Assignor to change to, repeatable. uniform and server-range run on the broker and "
        "require the consumer protocol.",
        show_default="sticky, cooperative-sticky, uniform",
    )
    current: str | None = option(
        None, "Current assignor of groups for which the source does not show it."
    )
    at_once: list[int] | None = option(
        None,
        "Number of members that restart at the same time; repeatable.",
        min=1,
        show_default="1",
    )
    downtime: float = option(
        10.0, "Time during which the process of a restarting member does not run.", min=0
    )
    pause: float = option(
        30.0, "Time from the start of a restarted member to the stop of the next one.", min=0.1
    )
    session_timeout: float = option(45.0, "Session timeout of the members.", min=1)
    criterion: Criterion = option(
        Criterion.UNOWNED,
        "The recommendation minimises this cost of a rolling restart: rebalances, moves, or "
        "unowned (partition-seconds without an owner).",
        "--minimise",
    )
    seed: int = option(0, "Random seed of the delays of heartbeats.")
    output_format: Format = format_option(Format.JSONL)


def forecast(options: ForecastOptions, source: GroupSource) -> None:
    """Forecast the rebalances that a change of a group causes.

    kassay simulates each configuration from the current owners: the current one, static
    members, other assignors, and the consumer protocol. The result of a configuration has the
    cost of the change, by rolling restarts, and the cost of a later rolling restart, such as an
    upgrade of the client: rebalances, moves, and partition-seconds without an owner. The
    recommendation is the configuration with the lowest cost of a later restart, see --minimise.
    A change between assignors of the classic protocol needs two rolling restarts. All times are
    in seconds.

    Example: `kassay forecast captures/ --at-once 1 --at-once 2 --format table`
    """
    settings = RestartSettings(
        downtime=round(1000 * options.downtime),
        pause=round(1000 * options.pause),
        session=round(1000 * options.session_timeout),
        seed=options.seed,
    )
    sizes = options.at_once or [1]

    def process(group: Group) -> GroupResult:
        found = forecast_changes(
            group,
            assignors=options.assignor,
            current=options.current,
            batch_sizes=sizes,
            settings=settings,
        )
        record = _record(
            group,
            found,
            current_assignor(group, options.current),
            recommend(found, options.criterion),
        )
        if options.output_format is Format.TABLE:
            print_note(f"{group.id}: {_text(record)}")
        return GroupResult(record)

    layout = TableLayout(
        first=("configuration",),
        numbers=(
            *("at once", "change", "moves", "unowned s"),
            *("restart", "moves", "unowned s", "maximum"),
        ),
        rows=_rows,
    )
    process_groups(source.file, process, options.output_format, layout, source.import_options())


def _record(
    group: Group, forecasts: Sequence[Forecast], current: str, best: Recommendation
) -> dict[str, object]:
    return {
        "id": group.id,
        "current": current,
        "own_assignor": identify_assignor(group).record(),
        "forecasts": [
            {
                "configuration": one.configuration.name,
                "at_once": one.batch_size,
                "change": None if one.change is None else _cost(one.change),
                "restart": _cost(one.restart),
                "maximum_partitions": one.makespan,
            }
            for one in forecasts
        ],
        "recommendation": {
            "configuration": best.configuration,
            "at_once": best.batch_size,
            "reason": best.reason,
        },
    }


def _cost(cost: SegmentCost) -> dict[str, object]:
    return {
        "rebalances": cost.rebalances,
        "moves": cost.moves,
        "partition_seconds_without_owner": round(cost.unowned_ms / 1000, 1),
    }


def _rows(record: Record) -> Iterator[Sequence[object]]:
    for one in record["forecasts"]:
        yield (
            one["configuration"],
            one["at_once"],
            *_cells(one["change"]),
            *_cells(one["restart"]),
            one["maximum_partitions"],
        )


def _text(record: Record) -> str:
    best = record["recommendation"]
    return f"recommended: {best['configuration']}, {best['at_once']} at once: {best['reason']}"


def _cells(cost: Record | None) -> Sequence[object]:
    keys = ("rebalances", "moves", "partition_seconds_without_owner")
    return ["–"] * 3 if cost is None else [cost[key] for key in keys]
