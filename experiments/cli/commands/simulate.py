"""``kassay simulate``: a group through time."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from kassay.experiments.cli.group_io import Format, to_json
from kassay.experiments.simulation.cost import SimulationCost, cost_of
from kassay.experiments.simulation.policies import POLICIES
from kassay.experiments.simulation.scenarios import SCENARIOS, load_script
from kassay.experiments.simulation.simulation import simulate as run
from kassay.experiments.simulation.simulation_result import SimulationResult
from kassay.experiments.simulation.timeline import simulation_document, timeline
from kassay.experiments.simulation.timeline_figure import draw_timeline
from kassay.reference.documents.config_nodes import format_choices
from kassay.reference.model.errors import InputError


def simulate(
    scripts: Annotated[
        list[str],
        typer.Argument(
            metavar="SCRIPT...",
            help=f"Files in YAML or JSON, or ready-made: {', '.join(SCENARIOS)}.",
            show_default=False,
        ),
    ],
    *,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Instead of the script's: {', '.join(POLICIES)}. Several are allowed.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="table: costs side by side, every rebalance solved; jsonl: a history a line; "
            "json: the same, indented. Without it the timeline in words.",
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--draw", help="Draw the timeline of one script and policy: .svg or .png."),
    ] = None,
) -> None:
    """Run a consumer group through a script and tell what it came to.

    A script has topics, members and events: who joins, leaves, crashes, stalls when. Each
    policy is an assignor under a protocol; the optimum is one of them.

    Example: `kassay simulate rolling-restart --policy sticky --policy uniform --format table`
    """
    unknown = next((name for name in policy or () if name not in POLICIES), None)
    if unknown is not None:
        raise InputError(f"no policy is called {unknown!r}, there are {format_choices(POLICIES)}")
    loaded = [load_script(script) for script in scripts]
    plan = [(script, name) for script in loaded for name in policy or script.policies]
    if picture is not None and (len(plan) != 1 or picture.suffix not in (".svg", ".png")):
        raise InputError("--draw takes one script, one policy, and a file in .svg or .png")
    costs: list[SimulationCost] = []
    for script, name in plan:
        history = run(script, POLICIES[name], keep_intervals=picture is not None)
        if picture is not None:
            draw_timeline(history, picture)
        if output is Format.TABLE:
            costs.append(cost_of(history, POLICIES[name], measured_from=script.measured_from))
        else:
            _print(history, output)
    if costs:
        Console().print(_table(costs))


def _print(history: SimulationResult, output: Format | None) -> None:
    if output is None:
        for line in timeline(history):
            typer.echo(line)
        typer.echo(
            f"{len(history.completed)} rebalances, {history.moves} moves, "
            f"{history.unowned_ms / 1000:.1f} partition-seconds without a consumer, "
            f"{history.unowned_messages} messages produced meanwhile, "
            f"{history.reread_messages} read twice\n"
        )
    elif output is Format.JSONL:
        typer.echo(to_json(simulation_document(history)))
    else:
        Console(soft_wrap=True, highlight=False).print_json(data=simulation_document(history))


def _table(costs: list[SimulationCost]) -> Table:
    table = Table("script", "policy")
    for heading in (
        "rebalances",
        "moves",
        "needed",
        "unnecessary",
        "unowned s",
        "reread",
        "max lag",
    ):
        table.add_column(heading, justify="right")
    for cost in costs:
        table.add_row(
            cost.script,
            cost.policy,
            str(cost.rebalances),
            str(cost.moves),
            str(cost.needed_moves),
            str(cost.unnecessary_moves) + ("" if cost.proven else "+"),
            f"{cost.unowned_seconds:.1f}",
            str(cost.reread_messages),
            str(cost.max_lag),
        )
    return table
