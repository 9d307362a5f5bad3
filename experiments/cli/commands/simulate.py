"""``kassay simulate``: simulate consumer groups over time."""

from dataclasses import dataclass

import typer

from kassay.experiments.cli.application import REQUIRED, argument, option
from kassay.experiments.cli.write_results import Format, print_records, print_table
from kassay.experiments.implementations.assignor_names import shown_name
from kassay.experiments.simulation import simulation_result
from kassay.experiments.simulation.assignor_policies import POLICIES, policy_named
from kassay.experiments.simulation.run_simulation import simulate as run
from kassay.experiments.simulation.script import BUILT_IN_SCRIPTS, load_script
from kassay.reference.model.display import count_of
from kassay.reference.model.errors import InputError


def _known_policies(names: list[str] | None) -> list[str]:
    try:
        return list(dict.fromkeys(policy_named(name).name for name in names or ()))
    except InputError as error:
        raise typer.BadParameter(str(error)) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateOptions:
    """Command-line options of ``kassay simulate``."""

    scripts: list[str] = argument(
        REQUIRED, text_names=BUILT_IN_SCRIPTS, metavar="SCRIPT...", show_default=False
    )
    policy: list[str] | None = option(
        None,
        text_names=POLICIES,
        callback=_known_policies,
        show_default="the policies of the script",
    )
    output_format: Format | None = option(None, "--format", show_default="a text timeline")


def simulate(options: SimulateOptions) -> None:
    """Run ``kassay simulate`` with parsed options."""
    loaded = map(load_script, options.scripts)
    runs = [(script, name) for script in loaded for name in options.policy or script.policies]
    costs: list[simulation_result.SimulationCost] = []
    for script, name in runs:
        applied = policy_named(name)
        result = run(script, applied)
        if options.output_format is Format.TABLE:
            costs.append(
                simulation_result.cost_of(result, applied, measured_from=script.measured_from)
            )
        else:
            _print(result, options.output_format)
    if costs:
        print_table([_row(cost) for cost in costs], text=("script", "policy"))


def _print(result: simulation_result.SimulationResult, output_format: Format | None) -> None:
    if output_format is None:
        for line in simulation_result.timeline(result):
            typer.echo(line)
        typer.echo(
            f"{count_of(len(result.completed), 'rebalance')}, {count_of(result.moves, 'move')}, "
            f"{result.unowned_ms / 1000:.1f} partition-seconds without a consumer, "
            f"{result.unowned_messages} messages produced meanwhile, "
            f"{result.reread_messages} read twice\n"
        )
    else:
        print_records([simulation_result.simulation_document(result)], output_format)


def _row(cost: simulation_result.SimulationCost) -> dict[str, object]:
    return {
        "script": cost.result.script,
        "policy": shown_name(cost.result.policy),
        "rebalances": cost.rebalances,
        "moves": cost.result.moves,
        "needed": cost.needed_moves,
        "unnecessary": str(cost.unnecessary_moves) + ("" if cost.proven else "+"),
        "s without owner": f"{cost.unowned_seconds:.1f}",
        "reread": cost.result.reread_messages,
        "max lag": cost.result.max_lag,
    }
