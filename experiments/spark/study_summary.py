"""Aggregate the cases of a study into summary tables of counts, on Spark.

`kassay report` computes all figures and statistics from these tables. They are exact and small:
their size depends on the number of distinct values, not on the number of cases.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from kassay.experiments.report.assignor_summary import (
    COMPARED_ASSIGNORS,
    NAMED_FAMILY,
    WORST_CANDIDATES,
    assignors_of,
    compared_assignors,
    without_named,
)
from kassay.experiments.spark.output_files import PARQUET_OPTIONS
from kassay.experiments.spark.study_schemas import LISTS, TABLES
from kassay.experiments.study.evaluate_case import DRAWN_MEMBERS, DRAWN_PARTITIONS
from kassay.experiments.study.families.registry import FAMILIES
from kassay.experiments.study.statistics.parameter_effects import (
    EFFECT_PARAMETERS,
    MEASURED,
)
from kassay.experiments.study.statistics.performance_profiles import PROFILED, RATIOS
from kassay.reference.model.metrics import MEASURES

_PROVEN = "c -> c.proven AND c.ending <> 'error'"
_MISSED = "NOT coalesce(least_imbalance, false)"
_KNOWN = "owned > 0 AND unnecessary_moves IS NOT NULL"


def write_summary(cases: DataFrame, uri: str) -> dict[str, int]:
    """Write the summary tables of a study. Return the number of rows per study table."""
    rows = _rows(cases)
    counted = rows.where(F.col("family") != NAMED_FAMILY)
    outcomes = without_named(_written(_outcomes(rows), f"{uri}/outcomes").toPandas())
    names = assignors_of(outcomes["assignor"])
    compared = compared_assignors(names)
    tables = {
        "gaps": _gaps(rows),
        "pairs": _pairs(cases, compared),
        "parameters": _parameters(counted, compared),
        "profiles": _profiles(counted),
        "gap_sums": _gap_sums(counted, len(names)),
        "worst": _worst(rows, compared),
        "trajectories": _rebalance_sums(cases, "seed", "start_members"),
        "events": _rebalance_sums(cases, "event", "period"),
    }
    for name, table in tables.items():
        _written(table, f"{uri}/{name}")
    totals = _written(_families(cases), f"{uri}/families").agg(
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in TABLES)
    )
    [found] = totals.collect()
    return found.asDict()


def _written(table: DataFrame, uri: str) -> DataFrame:
    table.coalesce(1).write.options(**PARQUET_OPTIONS).parquet(uri)
    return table.sparkSession.read.parquet(uri)


def _rows(cases: DataFrame) -> DataFrame:
    """Return one row per assignor and group; skip comparisons that ended with an error."""
    all_known = " AND ".join(f"c.{name}_gap IS NOT NULL" for name in MEASURES)
    complete = f"filter(comparisons, c -> c.ending <> 'error' AND {all_known})"
    optima = (
        F.expr(
            f"array_max(transform(filter(comparisons, {_PROVEN}), c -> c.{name}_optimum))"
        ).alias(f"{name}_known")
        for name in PROFILED
    )
    rows = cases.select(
        "groups",
        "optima",
        F.size(F.expr(complete)).alias("complete"),
        *optima,
        F.inline(F.arrays_zip("assignments", "comparisons")),
    )
    return rows.select("*", "groups.*", "comparisons.*").where("ending <> 'error'")


def _outcomes(rows: DataFrame) -> DataFrame:
    known = f"proven AND {_KNOWN}"
    return rows.groupBy("family", "mixed", "assignor").agg(
        F.expr("count_if(proven)").alias("groups"),
        F.expr(f"count_if(proven AND {_MISSED})").alias("missed"),
        F.expr(f"count_if({known})").alias("known"),
        F.expr(f"count_if({known} AND unnecessary_moves > 0)").alias("wasteful"),
        F.expr(f"sum(if({known}, movement_greedy, 0))").alias("moves"),
        F.expr(f"sum(if({known}, unnecessary_moves, 0))").alias("unnecessary_moves"),
        F.expr("max(if(proven, makespan_gap, null))").alias("largest_excess"),
        F.expr("count_if(ending = 'nonterminating')").alias("nonterminating"),
        F.expr("count_if(ending IN ('failed', 'invalid'))").alias("failed"),
    )


def _families(cases: DataFrame) -> DataFrame:
    def number(condition: str) -> Column:
        return F.sum(F.size(F.expr(f"filter(comparisons, c -> {condition})")))

    return cases.groupBy(F.col("groups.family").alias("family")).agg(
        F.count("*").alias("groups"),
        F.count("groups.error").alias("errors"),
        F.expr("count_if(optima.status = 'optimal')").alias("proven"),
        F.expr("count_if(optima.status <> 'optimal')").alias("unproven"),
        F.expr("count_if(exists(comparisons, c -> c.ending <> 'error'))").alias("compared"),
        F.count("optima").alias("optima"),
        *(F.sum(F.size(name)).alias(name) for name in LISTS),
        number("c.ending = 'error'").alias("comparison_errors"),
        number("c.ending = 'ok' AND c.unnecessary_moves IS NULL").alias("unknown_moves"),
    )


def _gaps(rows: DataFrame) -> DataFrame:
    """Count the groups by family, assignor and value of each heuristic gap."""
    keys, gaps = ("family", "assignor", "owned"), ("sum_of_squares_gap", "unnecessary_moves")
    values = rows.withColumn("owned", F.expr("owned > 0")).unpivot(keys, gaps, "gap", "value")
    known = values.where("value IS NOT NULL")
    return known.groupBy("gap", *keys, "value").agg(F.count("*").alias("groups"))


def _pairs(cases: DataFrame, compared: Sequence[str]) -> DataFrame:
    """Count the cases for each pair of assignors, by both assignors' results."""
    proven = cases.where(F.col("groups.family") != NAMED_FAMILY).select(
        F.col("groups.owned").alias("owned"),
        F.expr(f"""transform(filter(comparisons, {_PROVEN}), c -> struct(
            c.assignor, coalesce(c.least_imbalance, false) AS least, c.unnecessary_moves AS moves
        ))""").alias("rows"),
    )
    first = proven.select("*", F.explode("rows").alias("one"))
    pairs = first.select("owned", "one", F.explode("rows").alias("two"))
    order = F.array(*map(F.lit, compared)).cast("array<string>")
    one, two = (F.array_position(order, F.col(f"{name}.assignor")) for name in ("one", "two"))
    columns = {
        "before": "one.assignor",
        "after": "two.assignor",
        "least_before": "one.least",
        "least_after": "two.least",
        "difference": "if(owned > 0, two.moves - one.moves, null)",
    }
    ordered = pairs.where((one > 0) & (one < two))
    return ordered.groupBy(*(F.expr(formula).alias(name) for name, formula in columns.items())).agg(
        F.count("*").alias("groups")
    )


def _parameters(rows: DataFrame, compared: Sequence[str]) -> DataFrame:
    """Count the groups by value of each parameter, such as the number of members."""
    formulas = {
        "members": "participants",
        "topics": "consumed",
        "partitions": "partitions",
        "partitions per member": "try_divide(partitions, participants)",
        "overlap": "try_divide(subscriptions, participants * consumed)",
        "owned": "try_divide(owned, partitions)",
        **EFFECT_PARAMETERS,
    }
    kept = {
        "missed": _MISSED,
        "known": _KNOWN,
        "wasteful": f"{_KNOWN} AND unnecessary_moves > 0",
    }
    values = rows.where("proven").select(
        *("family", "assignor"),
        *(F.expr(formula).alias(name) for name, formula in kept.items()),
        *(F.expr(formula).cast("double").alias(name) for name, formula in formulas.items()),
    )
    keys = ("family", "assignor", *kept)
    needed = F.col("assignor").isin(*compared) | ~F.col("parameter").isin(*MEASURED)
    return (
        values.unpivot(keys, tuple(formulas), "parameter", "value")
        .where(needed & F.col("value").isNotNull())
        .groupBy("family", "assignor", "parameter", "value")
        .agg(F.count("*").alias("groups"), *(F.count_if(name).alias(name) for name in kept))
    )


def _profiles(rows: DataFrame) -> DataFrame:
    """Count the groups on which each assignor is within a given ratio of the optimum."""
    values = ", ".join(f"'{name}', {name}_greedy, {name}_known" for name in PROFILED)
    measured = f"stack({len(PROFILED)}, {values}) AS (measure, greedy, optimum)"
    within = (
        F.expr(f"count_if((greedy + 1) / (optimum + 1) <= double('{bound}'))").alias(f"within_{n}")
        for n, bound in enumerate(RATIOS)
    )
    known = rows.where("proven").selectExpr("assignor", measured).where("optimum IS NOT NULL")
    return known.groupBy("measure", "assignor").agg(F.count("*").alias("groups"), *within)


def _gap_sums(rows: DataFrame, assignors: int) -> DataFrame:
    """Sum the heuristic gaps per assignor, over groups where all gaps are known."""
    return (
        rows.where(F.col("complete") == assignors)
        .groupBy("assignor")
        .agg(
            F.count("*").alias("groups"),
            *(F.sum(f"{name}_gap").alias(f"{name}_gap") for name in MEASURES),
        )
    )


def _rebalance_sums(cases: DataFrame, *keys: str) -> DataFrame:
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


def _worst(rows: DataFrame, compared: Sequence[str]) -> DataFrame:
    """Return the groups with the largest gaps per assignor, and the hand-written groups."""
    available = F.col("document").isNotNull() | F.col("family").isin(*FAMILIES)
    small = f"partitions <= {DRAWN_PARTITIONS} AND members <= {DRAWN_MEMBERS}"
    # Gaps in weight units are not comparable with gaps in partitions.
    kinds = F.expr("""stack(3,
        'imbalance', weighted, -makespan_gap, -sum_of_squares_gap,
            coalesce(makespan_gap, 0) > 0 OR coalesce(sum_of_squares_gap, 0) > 0,
        'moves', false, -unnecessary_moves, 0L, coalesce(unnecessary_moves > 0, false),
        'endless', false, 0L, 0L, ending = 'nonterminating'
    ) AS (kind, one, two, three, present)""")
    order = [F.col(name).asc_nulls_last() for name in ("one", "two", "three", "partitions", "case")]
    rank = F.row_number().over(Window.partitionBy("assignor", "kind").orderBy(*order))
    columns = (
        *("kind", "rank", F.col("groups").alias("group"), F.col("comparisons").alias("comparison")),
        F.col("assignments.assignment").alias("assignment"),
        F.col("optima.assignment").alias("optimum"),
    )
    drawable = rows.where(F.col("assignor").isin(*compared) & available & F.expr(small))
    counted = drawable.where(F.col("family") != NAMED_FAMILY).select("*", kinds)
    worst = counted.where("present").withColumn("rank", rank)
    named = rows.where(F.col("family") == NAMED_FAMILY).withColumns(
        {"kind": F.lit("named"), "rank": F.lit(0)}
    )
    return (
        worst.where(F.col("rank") <= WORST_CANDIDATES)
        .select(*columns)
        .unionAll(named.where(F.col("assignor").isin(*COMPARED_ASSIGNORS)).select(*columns))
    )
