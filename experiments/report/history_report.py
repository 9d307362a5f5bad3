"""Moves of each group in the output of ``kassay history``."""

from pathlib import Path

from kassay.experiments.planning.survey import MoveHistory
from kassay.experiments.study.output_reader import read_table, verified_manifest
from kassay.reference.model.errors import InputError


def group_histories(directory: Path) -> dict[str, MoveHistory]:
    """Compute the totals of each group from an output directory of ``kassay history``."""
    manifest = verified_manifest(directory)
    if "history" not in manifest:
        raise InputError(f"{directory} contains no output of kassay history")
    columns = ["group", "movement_greedy", "unnecessary_moves"]
    rows = read_table(directory / manifest["history"] / "rebalances", columns)
    proven = rows[rows["unnecessary_moves"].notna()].groupby("group").sum()
    return {
        str(name): MoveHistory(
            rebalances=len(own),
            moves=int(proven["movement_greedy"].get(name, 0)),
            unnecessary=int(proven["unnecessary_moves"].get(name, 0)),
        )
        for name, own in rows.groupby("group")
    }
