"""The ready-made scripts under every policy: one table, and the pictures beside it.

``python -m kassay.experiments.simulation.policy_comparison docs/images`` prints the table in
Markdown and draws
the pictures that docs/coordinator.md shows.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from kassay.experiments.simulation.cost import SimulationCost, cost_of
from kassay.experiments.simulation.policies import POLICIES
from kassay.experiments.simulation.scenarios import SCENARIOS, load_script
from kassay.experiments.simulation.simulation import simulate
from kassay.experiments.simulation.timeline_figure import draw_timeline

PICTURES = (
    ("rolling-restart", "sticky"),
    ("rolling-restart", "cooperative-sticky"),
    ("rolling-restart", "uniform"),
    ("crash", "cooperative-sticky"),
    ("slow-leader", "sticky"),
    ("fail-over", "cooperative-sticky"),
)
"""Scripts and policies that are drawn."""


def costs(scripts: Iterable[str] = tuple(SCENARIOS)) -> Iterator[SimulationCost]:
    """Run ready-made scripts under every policy.

    Examples
    --------
    >>> [cost.policy for cost in costs(["crash"])][:2]
    ['range', 'roundrobin']
    """
    for name in scripts:
        script = load_script(name)
        for policy in POLICIES.values():
            yield cost_of(simulate(script, policy), policy, begins=script.begins)


def table(rows: Iterable[SimulationCost]) -> Iterator[str]:
    """Write costs as a Markdown table."""
    yield (
        "| scenario | policy | protocol | rebalances | moves | needed | too many | gap | "
        "stopped, partition-s | unread | reread | lag peak |"
    )
    yield "|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for row in rows:
        sure = "" if row.proven else "+"
        yield (
            f"| {row.script} | {row.policy} | {row.protocol} | {row.rebalances} | {row.moves} | "
            f"{row.needed} | {row.unnecessary}{sure} | {row.imbalance_gap} | {row.stopped:.1f} | "
            f"{row.unread} | {row.rereads} | {row.lag_peak} |"
        )


def protocols(rows: Iterable[SimulationCost]) -> Iterator[str]:
    """Write what each protocol does with each scenario as a Markdown table, side by side.

    Rebalances, moves, and partition-seconds without a consumer, under Kafka's own sticky
    assignor for the protocol.
    """
    names = ("sticky", "cooperative-sticky", "uniform")
    yield "| scenario | eager: sticky | cooperative: cooperative-sticky | KIP-848: uniform |"
    yield "|---|--:|--:|--:|"
    by_script: dict[str, dict[str, SimulationCost]] = {}
    for row in rows:
        by_script.setdefault(row.script, {})[row.policy] = row
    for script, found in by_script.items():
        cells = (
            f"{c.rebalances} / {c.moves} / {c.stopped:.1f}" for c in map(found.get, names) if c
        )
        yield f"| {script} | {' | '.join(cells)} |"


def pictures(directory: Path) -> None:
    """Draw `PICTURES` into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, policy in PICTURES:
        history = simulate(load_script(name), POLICIES[policy], keep=True)
        draw_timeline(history, directory / f"simulate-{name}-{policy}.svg")


def main(directory: str) -> None:
    """Print the tables and draw the pictures."""
    rows = list(costs())
    for line in (*protocols(rows), "", *table(rows)):
        print(line)  # noqa: T201
    pictures(Path(directory))


if __name__ == "__main__":
    main(*sys.argv[1:2])
