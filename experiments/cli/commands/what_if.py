"""``kassay what-if``: the best that changed groups can do."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from kassay.experiments.cli.group_io import (
    STDIN,
    Answer,
    Format,
    OutputFormat,
    answer_groups,
)
from kassay.experiments.cli.plot_options import FORMATS
from kassay.experiments.cli.search_options import Seconds, Seed, Workers, WorkLimit
from kassay.experiments.cli.source_options import (
    Metadata,
    MissingLag,
    Sizes,
    Source,
    Subscriptions,
    WeightsFrom,
    import_options,
    read_source,
)
from kassay.experiments.planning.scenario_spec import ScenarioSpec
from kassay.experiments.planning.what_if import scenarios
from kassay.experiments.planning.what_if import what_if as find_best
from kassay.experiments.plotting.plot_files import ScenarioBars, draw_scenarios
from kassay.experiments.sources.import_options import AssumedSubscriptions, WeightSource
from kassay.reference.model.group import Group
from kassay.solver.limits import SearchLimits
from kassay.solver.solution import Status


def what_if(
    source: Source = STDIN,
    *,
    members: Annotated[
        str | None,
        typer.Option(
            metavar="N|+N|-N|A..B",
            help="So many members, more or fewer, or a sweep: 5..50, 5..50:5, +0..+10, 8,12.",
            show_default=False,
        ),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            metavar="MEMBER",
            help="Further members are like this one; by default they consume all topics.",
            show_default=False,
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="MEMBER", help="Leave a member out; repeated.", show_default=False),
    ] = None,
    partitions: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC=N", help="Partitions of a topic; repeated.", show_default=False
        ),
    ] = None,
    subscribe: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEMBER=TOPIC", help="One more subscription; repeated.", show_default=False
        ),
    ] = None,
    weights: WeightsFrom = WeightSource.NONE.value,
    missing_lag: MissingLag = None,
    sizes: Sizes = None,
    subscriptions: Subscriptions = AssumedSubscriptions.ASSIGNED.value,
    metadata: Metadata = None,
    growth: Annotated[
        str | None,
        typer.Option(metavar="X[,X...]", help="Multiply all weights.", show_default=False),
    ] = None,
    capacity: Annotated[
        int | None,
        typer.Option(min=0, help="Most load of a member that names none.", show_default=False),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE.svg|FILE.png", help="Draw loads and moves.", show_default=False),
    ] = None,
    time_limit: Seconds = 60.0,
    deterministic_limit: WorkLimit = None,
    workers: Workers = 1,
    seed: Seed = 0,
    output: OutputFormat = Format.JSONL,
) -> None:
    """Find the least imbalance and the fewest moves after changes to a group.

    All changes apply together; where one has several values, each combination is a
    scenario of its own. The group as it is comes first. Exits with 1 where a scenario
    has no assignment.

    Example: `kassay what-if groups.jsonl --members +0..+5 --growth 1,1.5 --format table`
    """
    if plot is not None and plot.suffix not in FORMATS:
        raise typer.BadParameter(f"the name must end in {' or '.join(FORMATS)}, got {plot.name!r}")
    table = None if weights in list(WeightSource) else Path(weights)
    joining = import_options(
        subscriptions=subscriptions,
        metadata=metadata,
        weights=weights if table is None else WeightSource.NONE.value,
        sizes=sizes,
        missing_lag=missing_lag,
    )
    wishes = ScenarioSpec(
        partitions=tuple(partitions or ()),
        subscriptions=tuple(subscribe or ()),
        without=tuple(without or ()),
        members=members,
        like=like,
        weights=table,
        growth=growth,
        capacity=capacity,
    )
    alternatives = wishes.alternatives()
    drawn = 0
    limits = SearchLimits(time=time_limit, deterministic=deterministic_limit, workers=workers)

    def work(group: Group) -> Answer:
        nonlocal drawn
        wanted = [*scenarios(group, ()), *(scenarios(group, alternatives) if alternatives else ())]
        found = [
            find_best(
                scenario,
                before=group,
                limits=limits,
                seed=seed,
            )
            for scenario in wanted
        ]
        if plot is not None:
            drawn += 1
            file = plot if drawn == 1 else plot.with_stem(f"{plot.stem}-{drawn}")
            draw_scenarios(
                [
                    ScenarioBars(
                        label=one.scenario.name, makespan=one.makespan, movement=one.movement
                    )
                    for one in found
                ],
                file,
                title=group.id,
            )
        reached = all(one.status in (Status.OPTIMAL, Status.FEASIBLE) for one in found)
        return Answer(
            {"id": group.id, "scenarios": [one.record() for one in found]}, reached=reached
        )

    groups = read_source(source, joining)
    answer_groups(source, work, output=output, table=_table, groups=groups)


def _table(records: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("group", "scenario")
    for title in ("members", "partitions", "greatest load", "bound", "moves", "bound", "placed"):
        table.add_column(title, justify="right")
    table.add_column("status")
    for record in records:
        if "error" in record:
            table.add_row(record["id"], record["error"])
            continue
        for one in record["scenarios"]:
            figures = [one["members"], one["partitions"]]
            for level in (one["makespan"], one["movement"]):
                figures += ["", ""] if level is None else [level["value"], level["bound"]]
            status = one["status"]
            if one["topics_without_subscribers"]:
                status += f"; no member consumes {', '.join(one['topics_without_subscribers'])}"
            cells = map(str, (*figures, one["placed"]))
            table.add_row(record["id"], one["scenario"], *cells, status)
    return table
