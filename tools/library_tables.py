"""Tables of results of assignors of libraries, for the documentation."""

import pandas as pd

from kassay.experiments.implementations.client_libraries import (
    libraries,
    parse_library_assignor,
    version_key,
)
from kassay.experiments.report.study_tables import (
    AssignorSummary,
    ReportTable,
    by_assignor,
    by_family,
    by_subscriptions,
    main_scope,
    scope_rows,
    short_number,
)


def library_tables(outcomes: pd.DataFrame) -> tuple[ReportTable, ...]:
    """Create the tables per assignor of a library: all groups, by subscriptions and by family."""
    rows = scope_rows(outcomes, main_scope(outcomes))
    names = sorted(set(rows["assignor"]), key=_order)
    total = by_assignor(rows, names)
    families = by_family(rows)
    halves = by_subscriptions(rows, names)
    return (
        _table("libraries", {name: _results(total[name]) for name in names}),
        _table(
            "libraries-by-subscriptions", {name: _by_subscriptions(*halves[name]) for name in names}
        ),
        *(
            _table(
                f"libraries-{field.replace('_', '-')}",
                {
                    name: {
                        family: getattr(own[name], field).percent_of_total
                        for family, own in families.items()
                    }
                    for name in names
                },
            )
            for field in ("minimum_imbalance", "with_unnecessary_moves")
        ),
    )


def _order(name: str) -> tuple[int, str, tuple[int, ...]]:
    """Return a sort key: the library in the order of the catalogue, the assignor, the version."""
    parsed = parse_library_assignor(name)
    number = list(libraries()).index(parsed.library.name)
    return number, parsed.assignor.name, version_key(parsed.version)


def _results(found: AssignorSummary) -> dict[str, str]:
    sums, moves = found.sums, found.with_unnecessary_moves
    others = sums["failed"] - sums["invalid"] - sums["crashed"]
    return {
        "groups": _count(sums["groups"]),
        "with a result": _count(sums["answered"]),
        "misses the minimum imbalance": found.missed.percent_with_interval,
        "excess: mean, %": short_number(found.mean_excess),
        "largest, %": short_number(found.largest_excess_percent),
        "largest, partitions": short_number(found.largest_excess),
        "groups with owned partitions": _count(moves.total),
        "with unnecessary moves": moves.percent_with_interval,
        "unnecessary moves per rebalance": short_number(found.ratio("unnecessary_moves", "known")),
        "unnecessary moves per owned partition, %": short_number(
            found.ratio("unnecessary_moves", "owned_partitions", 100)
        ),
        "invalid": _count(sums["invalid"]),
        "hangs": _count(sums["nonterminating"]),
        "crashes": _count(sums["crashed"]),
        "other failures": _count(others),
    }


def _count(number: int) -> str:
    return f"{number:,}"


def _by_subscriptions(equal: AssignorSummary, mixed: AssignorSummary) -> dict[str, str]:
    kinds = (("equal", equal), ("mixed", mixed))
    return {
        **{f"misses the minimum imbalance: {kind}": one.missed.percent for kind, one in kinds},
        **{
            f"with unnecessary moves: {kind}": one.with_unnecessary_moves.percent
            for kind, one in kinds
        },
        **{
            f"unnecessary moves per rebalance: {kind}": short_number(
                one.ratio("unnecessary_moves", "known")
            )
            for kind, one in kinds
        },
    }


def _table(name: str, rows: dict[str, dict[str, str]]) -> ReportTable:
    """Create a table with one row per assignor. The names contain no time limit."""
    shown = {}
    for assignor, cells in rows.items():
        parsed = parse_library_assignor(assignor)
        shown[f"`{parsed.library.name}@{parsed.version}:{parsed.assignor.name}`"] = cells
    return ReportTable(
        name=name,
        columns=("assignor", *next(iter(shown.values()), {})),
        rows=tuple((assignor, *cells.values()) for assignor, cells in shown.items()),
        csv=pd.DataFrame(shown).T.to_csv(),
    )
