"""Sum the results of a study: of groups and rebalances by covariates, and of fronts, on Spark."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

_KEYS = ("family", "scope", "seed", "event", "mixed", "members", "partitions", "assignor")
_SUMS = ("answered", "above_maximum", "excess_ppm", "known", "unnecessary_moves", "wasteful")
_RESULTS = """struct(
    family, scope, seed, event, mixed, assignor,
    length(bin(greatest(members, 1))) - 1 AS members,
    length(bin(greatest(partitions, 1))) - 1 AS partitions,
    1L AS answered, cast(excess > 0 AS long) AS above_maximum,
    1000000 * excess div greatest(least, 1) AS excess_ppm,
    cast(extra IS NOT NULL AS long) AS known, coalesce(extra, 0L) AS unnecessary_moves,
    cast(coalesce(extra, 0L) > 0 AS long) AS wasteful
) AS result"""


def covariate_cells(rows: DataFrame, cases: DataFrame, compared: Sequence[str]) -> DataFrame:
    """Sum the results of the given assignors over groups or rebalances with equal covariates.

    The numbers of members and partitions are rounded down to powers of two; a cell has their
    exponents. Cells of event streams also have the seed of the stream and the kind of event; they
    do not contain the first assignment. ``rows`` has one row per group and assignor.
    """
    single = rows.where("proven AND ending = 'ok'").selectExpr(
        *("family", "scope", "cast(null AS bigint) AS seed", "cast(null AS string) AS event"),
        *("mixed", "assignor"),
        *("participants AS members", "partitions", "makespan_gap AS excess"),
        *("makespan_optimum AS least", "if(owned > 0, unnecessary_moves, null) AS extra"),
    )
    streams = cases.select(
        F.col("groups.family").alias("family"),
        F.col("groups.seed").alias("seed"),
        F.inline("rebalances"),
    ).where("rebalance > 0 AND ending = 'ok'")
    judged = streams.selectExpr(
        *(
            "family",
            "cast(null AS string) AS scope",
            "seed",
            "event",
            "mixed",
            "assignor",
            "members",
        ),
        *("partitions", "makespan - least_makespan AS excess", "least_makespan AS least"),
        "moves - fewest_moves_within AS extra",
    )
    results = single.unionByName(judged).where(F.col("assignor").isin(*compared))
    return (
        results.selectExpr(_RESULTS)
        .select("result.*")
        .groupBy(*_KEYS)
        .agg(*(F.sum(name).alias(name) for name in _SUMS))
    )


def rebalance_sums(cases: DataFrame, *keys: str) -> DataFrame:
    """Sum the results of the rebalances of event streams, by assignor and the given columns.

    The first assignment of a stream has no past and is not counted. A period is a sequence of
    ten rebalances.
    """
    family, seed = (F.col(f"groups.{name}").alias(name) for name in ("family", "seed"))
    members = F.col("groups.members").alias("start_members")
    rows = cases.select(family, seed, members, F.inline("rebalances")).where("rebalance > 0")
    rows = rows.withColumn("period", F.expr("(rebalance - 1) div 10"))
    known = "fewest_moves_within IS NOT NULL"
    formulas = {
        "rebalances": "count(*)",
        "failed": "count_if(ending <> 'ok')",
        "owned": "sum(owned)",
        "moves": "coalesce(sum(moves), 0)",
        "fewest_moves": "coalesce(sum(if(moves IS NULL, 0, fewest_moves)), 0)",
        "known": f"count_if({known})",
        "known_owned": f"sum(if({known}, owned, 0))",
        "unnecessary_moves": f"sum(if({known}, moves - fewest_moves_within, 0))",
        "with_unnecessary_moves": f"count_if({known} AND moves > fewest_moves_within)",
        "above_least_makespan": "count_if(makespan > least_makespan)",
        "above_least_squares": "count_if(sum_of_squares > least_sum_of_squares)",
        "least_makespan": "sum(if(makespan IS NULL, 0, least_makespan))",
        "excess": "coalesce(sum(makespan - least_makespan), 0)",
        "largest_excess": "coalesce(max(makespan - least_makespan), 0)",
    }
    columns = (F.expr(formula).alias(name) for name, formula in formulas.items())
    return rows.groupBy("family", "assignor", "mixed", *keys).agg(*columns)


def front_sums(cases: DataFrame) -> DataFrame:
    """Sum the distances to the front of three criteria, of groups with racks and owners.

    ``same_racks`` is about moves if off-rack reads must not increase, ``any_racks`` if they may,
    and ``no_racks`` about moves in the same groups without racks.
    """
    rows = cases.select(
        F.col("groups.family").alias("family"),
        F.col("groups.owned").alias("owned"),
        F.col("groups.partitions").alias("partitions"),
        F.inline("front_distances"),
    )
    extra = {
        "same_racks": "if(moves_within = moves_bound, moves - moves_within, null)",
        "any_racks": "moves - fewest_moves",
        "no_racks": "moves_without_racks - fewest_moves_without_racks",
        "avoidable_reads": "if(off_rack_within = off_rack_bound, off_rack - off_rack_within, null)",
        "avoidable_imbalance": (
            "if(imbalance_within = imbalance_bound, imbalance - imbalance_within, null)"
        ),
    }
    formulas = {
        "groups": "count(*)",
        "front_known": "count(on_front)",
        "on_front": "count_if(on_front)",
        **{name: f"sum({name})" for name in ("owned", "partitions", "moves", "off_rack")},
    }
    for name in extra:
        formulas |= {
            f"{name}_known": f"count({name})",
            f"{name}_groups": f"count_if({name} > 0)",
            name: f"coalesce(sum({name}), 0)",
        }
    values = rows.select("*", *(F.expr(formula).alias(name) for name, formula in extra.items()))
    columns = (F.expr(formula).alias(name) for name, formula in formulas.items())
    return values.groupBy("family", "assignor").agg(*columns)
