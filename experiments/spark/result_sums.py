"""Sum the results of a study on Spark: by pair of assignors, of event streams, and of fronts."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from kassay.experiments.study.evaluate_event_stream import HINDSIGHT

_SCOPE = ("family", "scope")


def _rebalances(cases: DataFrame) -> DataFrame:
    """Return the rebalances of event streams, with the moves of the hindsight optimum.

    The first assignment of a stream has no past. The moves are null if a stream has no hindsight
    optimum.
    """
    hindsight = f"filter(rebalances, row -> row.assignor = '{HINDSIGHT}')"
    moves = f"map_from_entries(transform({hindsight}, row -> struct(row.rebalance, row.moves)))"
    rows = cases.selectExpr(
        *("groups.family", "groups.seed", "groups.members AS start_members"),
        *(f"{moves} AS hindsight", "inline(rebalances)"),
    ).where("rebalance > 0")
    return rows.withColumn("hindsight_moves", F.expr("try_element_at(hindsight, rebalance)"))


def rebalance_sums(cases: DataFrame, *keys: str) -> DataFrame:
    """Sum the results of the rebalances of event streams, by assignor and the given columns.

    A period is a sequence of ten rebalances.
    """
    known = "fewest_moves_within IS NOT NULL"
    formulas = (
        "count(*) AS rebalances",
        "count_if(ending <> 'ok') AS failed",
        "sum(owned) AS owned",
        "coalesce(sum(moves), 0) AS moves",
        "coalesce(sum(if(moves IS NULL, 0, fewest_moves)), 0) AS fewest_moves",
        f"count_if({known}) AS known",
        f"sum(if({known}, owned, 0)) AS known_owned",
        f"sum(if({known}, moves - fewest_moves_within, 0)) AS unnecessary_moves",
        f"count_if({known} AND moves > fewest_moves_within) AS with_unnecessary_moves",
        "count_if(makespan > least_makespan) AS above_least_makespan",
        "count_if(sum_of_squares > least_sum_of_squares) AS above_least_squares",
        "sum(if(makespan IS NULL, 0, least_makespan)) AS least_makespan",
        "coalesce(sum(makespan - least_makespan), 0) AS excess",
        "coalesce(max(makespan - least_makespan), 0) AS largest_excess",
        "count(hindsight_moves) AS with_hindsight",
        "coalesce(sum(hindsight_moves), 0) AS hindsight_moves",
        "coalesce(sum(coalesce(moves, 0) - hindsight_moves), 0) AS above_hindsight",
    )
    rows = _rebalances(cases).withColumn("period", F.expr("(rebalance - 1) div 10"))
    return rows.groupBy("family", "assignor", "mixed", *keys).agg(*map(F.expr, formulas))


def front_sums(cases: DataFrame) -> DataFrame:
    """Sum the distances to the front of three criteria, of groups with racks and owners.

    ``same_racks`` is about moves if off-rack reads must not increase, ``any_racks`` if they may,
    and ``no_racks`` about moves in the same groups without racks.
    """
    extra = {
        "same_racks": "if(moves_within = moves_bound, moves - moves_within, null)",
        "any_racks": "moves - fewest_moves",
        "no_racks": "moves_without_racks - fewest_moves_without_racks",
        "avoidable_reads": "if(off_rack_within = off_rack_bound, off_rack - off_rack_within, null)",
        "avoidable_imbalance": (
            "if(imbalance_within = imbalance_bound, imbalance - imbalance_within, null)"
        ),
    }
    formulas = [
        *("count(*) AS groups", "count(on_front) AS front_known"),
        "count_if(on_front) AS on_front",
        *(f"sum({name}) AS {name}" for name in ("owned", "partitions", "moves", "off_rack")),
    ]
    for name in extra:
        formulas += [
            f"count({name}) AS {name}_known",
            f"count_if({name} > 0) AS {name}_groups",
            f"coalesce(sum({name}), 0) AS {name}",
        ]
    columns = ("groups.family", "groups.owned", "groups.partitions", "inline(front_distances)")
    values = cases.selectExpr(*columns).withColumns(
        {name: F.expr(formula) for name, formula in extra.items()}
    )
    return values.groupBy("family", "assignor").agg(*map(F.expr, formulas))


def measure_sums(cases: DataFrame) -> DataFrame:
    """Sum the measures of share groups, Streams applications and Connect clusters.

    The excess above the minimum is known if the minimum is proven.
    """
    excess = "if(minimum = bound, value - minimum, null)"
    formulas = (
        "count(*) AS answers",
        "sum(value) AS value",
        f"count({excess}) AS proven",
        f"count_if({excess} > 0) AS above",
        f"coalesce(sum({excess}), 0) AS excess",
        f"coalesce(max({excess}), 0) AS largest_excess",
    )
    rows = cases.selectExpr("groups.family", "inline(measures)")
    return rows.groupBy("family", "assignor", "measure").agg(*map(F.expr, formulas))


def solved_pairs(cases: DataFrame) -> DataFrame:
    """Return one row per case and pair of assignors that both have a result.

    ``cases`` has the scope of each group in the column ``scope``.
    """
    solved = cases.select(
        F.col("groups.family").alias("family"),
        "scope",
        F.col("groups.owned").alias("owned"),
        F.expr("""transform(filter(comparisons, c -> c.proven AND c.ending = 'ok'), c -> struct(
            c.assignor, coalesce(c.least_imbalance, false) AS least, c.unnecessary_moves AS moves
        ))""").alias("rows"),
    )
    first = solved.select("*", F.explode("rows").alias("one"))
    return first.select(*_SCOPE, "owned", "one", F.explode("rows").alias("two"))


def pair_counts(pairs: DataFrame, compared: Sequence[str]) -> DataFrame:
    """Count the cases for each pair of compared assignors, by both assignors' results."""
    order = F.array(*map(F.lit, compared)).cast("array<string>")
    one, two = (F.array_position(order, F.col(f"{side}.assignor")) for side in ("one", "two"))
    columns = (
        *("one.assignor AS before", "two.assignor AS after"),
        *("one.least AS least_before", "two.least AS least_after"),
        "if(owned > 0, two.moves - one.moves, null) AS difference",
    )
    ordered = pairs.where((one > 0) & (one < two))
    return ordered.groupBy(*_SCOPE, *map(F.expr, columns)).agg(F.count("*").alias("groups"))
