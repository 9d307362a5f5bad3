"""Tables and figures of docs/results/simulations.md, from simulations of the built-in scripts.

``python -m benchmarks.simulation_scripts docs/images`` prints the tables in Markdown and
draws the figures into the directory.
"""

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.timeline_figure import RecordedPartitions, draw_timeline
from kassay.experiments.simulation.assignor_policies import POLICIES
from kassay.experiments.simulation.run_simulation import Simulation, simulate
from kassay.experiments.simulation.script import BUILT_IN_SCRIPTS, load_script
from kassay.experiments.simulation.simulation_result import SimulationCost, cost_of

FIGURES = (
    ("rolling-restart", "sticky"),
    ("rolling-restart", "cooperative-sticky"),
    ("rolling-restart", "uniform"),
    ("crash", "cooperative-sticky"),
    ("slow-leader", "sticky"),
    ("fail-over", "cooperative-sticky"),
)
"""Script and policy of each figure."""
_PROTOCOL_POLICIES = ("sticky", "cooperative-sticky", "uniform")


def costs() -> Iterator[SimulationCost]:
    """Simulate the built-in scripts under every policy, and yield the cost of each simulation."""
    for name in BUILT_IN_SCRIPTS:
        script = load_script(name)
        for policy in POLICIES.values():
            result = simulate(script, policy)
            yield cost_of(result, policy, measured_from=script.measured_from)


def policy_table(rows: Iterable[SimulationCost]) -> Iterator[str]:
    """Format the costs per script and policy as a Markdown table."""
    yield (
        "| script | policy | protocol | rebalances | moves | needed | unnecessary | gap | "
        "unowned partition-s | unowned messages | reread | max lag |"
    )
    yield "|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for row in rows:
        result, plus = row.result, "" if row.proven else "+"
        yield (
            f"| {result.script} | {result.policy} | {row.protocol} | {row.rebalances} | "
            f"{result.moves} | {row.needed_moves} | {row.unnecessary_moves}{plus} | "
            f"{row.imbalance_gap} | {row.unowned_seconds:.1f} | {result.unowned_messages} | "
            f"{result.reread_messages} | {result.max_lag} |"
        )


def protocol_table(rows: Iterable[SimulationCost]) -> Iterator[str]:
    """Format rebalances, moves and unowned time per protocol as a Markdown table."""
    yield "| script | eager: sticky | cooperative: cooperative-sticky | KIP-848: uniform |"
    yield "|---|--:|--:|--:|"
    by_script: dict[str, dict[str, SimulationCost]] = {}
    for row in rows:
        by_script.setdefault(row.result.script, {})[row.result.policy] = row
    for script, by_policy in by_script.items():
        cells = (
            f"{cost.rebalances} / {cost.result.moves} / {cost.unowned_seconds:.1f}"
            for cost in map(by_policy.__getitem__, _PROTOCOL_POLICIES)
        )
        yield f"| {script} | {' | '.join(cells)} |"


def main() -> None:
    """Print the tables of simulation costs and draw the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="directory for the figures")
    directory = parser.parse_args().directory
    rows = list(costs())
    for line in (*protocol_table(rows), "", *policy_table(rows)):
        print(line)
    directory.mkdir(parents=True, exist_ok=True)
    for name, policy in FIGURES:
        recorded = RecordedPartitions()
        result = Simulation(load_script(name), POLICIES[policy], ownership=recorded).run()
        draw_timeline(result, recorded.intervals, directory / f"simulate-{name}-{policy}.svg")


if __name__ == "__main__":
    main()
