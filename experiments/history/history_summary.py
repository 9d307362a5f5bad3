"""What a history comes to, group by group."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from kassay.experiments.report.table_reader import read_table


def summarise(directory: Path) -> Iterator[dict[str, object]]:
    """Yield one record a group: generations, rebalances, moves made and moves needed.

    Moves are of the rebalances whose necessary number is proven.
    """
    generations = read_table(directory / "generations", ["group", "life", "number"])
    rebalances = read_table(
        directory / "rebalances",
        ["group", "movement_greedy", "unnecessary_moves", "least_imbalance", "proven"],
    )
    for group, mine in generations.groupby("group", sort=True):
        judged = rebalances[rebalances["group"] == group]
        told = judged[judged["unnecessary_moves"].notna()]
        yield {
            "id": group,
            "generations": len(mine),
            "last": int(mine.sort_values(["life", "number"])["number"].iloc[-1]),
            "rebalances": len(judged),
            "judged": len(told),
            "moves": _sum(told["movement_greedy"]),
            "unnecessary": _sum(told["unnecessary_moves"]),
            "least_imbalance": int(judged["least_imbalance"].fillna(value=False).sum()),
        }


def _sum(column: "pd.Series[int]") -> int:
    return int(column.sum())
