"""Aggregate the cases of a study into summary tables of counts, on Spark.

`kassay report` computes all figures and statistics from these tables. They are exact and small:
their size depends on the number of distinct values, not on the number of cases.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from kassay.experiments.report.assignor_summary import (
    APART,
    COMPARED_ASSIGNORS,
    GENERATED,
    NAMED_FAMILY,
    WORST_CANDIDATES,
    assignors_of,
    compared_assignors,
)
from kassay.experiments.spark.assignor_pairs import gap_sums, pair_counts, solved_pairs
from kassay.experiments.spark.covariate_cells import (
    covariate_cells,
    front_sums,
    rebalance_sums,
)
from kassay.experiments.spark.family_digests import family_digests
from kassay.experiments.spark.output_files import PARQUET_OPTIONS
from kassay.experiments.spark.study_schemas import LISTS, TABLES
from kassay.experiments.study.case import IMPORTED
from kassay.experiments.study.evaluate_case import DRAWN_MEMBERS, DRAWN_PARTITIONS
from kassay.experiments.study.families.registry import FAMILIES
from kassay.experiments.study.statistics.performance_profiles import PROFILED, RATIOS

_PROVEN = "c -> c.proven AND c.ending <> 'error'"
_ANSWERED = "proven AND ending = 'ok'"
_MISSED = f"{_ANSWERED} AND NOT coalesce(least_imbalance, false)"
_KNOWN = f"{_ANSWERED} AND owned > 0 AND unnecessary_moves IS NOT NULL"
_PPM = "1000000 * makespan_gap div greatest(makespan_optimum, 1)"
_KEYS = ("family", "scope")


def write_summary(cases: DataFrame, uri: str, *, counted: DataFrame) -> dict[str, int]:
    """Write the summary tables of a study. Return the number of rows per study table.

    ``counted`` has the same cases with the columns `COUNTED`. Only `_worst` reads the others.
    """
    rows = _rows(counted)
    outcomes = _written(_outcomes(rows), f"{uri}/outcomes").toPandas()
    compared = compared_assignors(assignors_of(outcomes["assignor"]))
    pairs = solved_pairs(counted.withColumn("scope", _scope()))
    tables = {
        "gaps": _gaps(rows),
        "pairs": pair_counts(pairs, compared),
        "parameters": _parameters(rows, compared),
        "profiles": _profiles(rows),
        "gap_sums": gap_sums(pairs),
        "worst": _worst(rows, _rows(cases), compared),
        "fronts": front_sums(counted),
        "trajectories": rebalance_sums(counted, "seed", "start_members"),
        "events": rebalance_sums(counted, "event", "period"),
        "cells": covariate_cells(rows, counted, [*{*compared, *COMPARED_ASSIGNORS}]),
    }
    for name, table in tables.items():
        _written(table, f"{uri}/{name}")
    totals = _written(_families(counted), f"{uri}/families").agg(
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in TABLES)
    )
    [found] = totals.collect()
    return found.asDict()


def _written(table: DataFrame, uri: str) -> DataFrame:
    table.coalesce(1).write.options(**PARQUET_OPTIONS).parquet(uri)
    return table.sparkSession.read.parquet(uri)


def _rows(cases: DataFrame) -> DataFrame:
    """Return one row per assignor and group; skip comparisons that ended with an error."""
    optima = (
        F.expr(
            f"array_max(transform(filter(comparisons, {_PROVEN}), c -> c.{name}_optimum))"
        ).alias(f"{name}_known")
        for name in PROFILED
        if name != "movement"
    )
    rows = cases.select(
        *("groups", "optima", "assignments", _scope().alias("scope")),
        *optima,
        F.explode("comparisons").alias("comparison"),
    )
    return rows.select("*", "groups.*", "comparison.*").where("ending <> 'error'")


def _scope() -> Column:
    """Return the scope of a group: groups of one scope have comparable results.

    Groups with weights or racks, groups of finite families, and imported groups are apart.
    """
    finite = [name for name, family in FAMILIES.items() if family.is_finite]
    family = F.col("groups.family")
    return (
        F.when(family == NAMED_FAMILY, APART["named"])
        .when(F.col("groups.weighted"), APART["weights"])
        .when(F.col("groups.racks"), APART["racks"])
        .when(family == IMPORTED, APART["imported"])
        .when(family.isin(finite), APART["finite"])
        .otherwise(GENERATED)
    )


def _outcomes(rows: DataFrame) -> DataFrame:
    counts = {
        "groups": "proven",
        "answered": _ANSWERED,
        "missed": _MISSED,
        "missed_maximum": f"{_ANSWERED} AND makespan_gap > 0",
        "known": _KNOWN,
        "wasteful": f"{_KNOWN} AND unnecessary_moves > 0",
        "nonterminating": "proven AND ending = 'nonterminating'",
        "failed": "proven AND ending IN ('failed', 'invalid')",
        "invalid": "proven AND ending = 'invalid'",
        "crashed": "proven AND ending = 'failed' AND contains(detail, '(signal SIG')",
    }
    sums = {
        "excess_ppm": (_ANSWERED, _PPM),
        "moves": (_KNOWN, "movement_greedy"),
        "unnecessary_moves": (_KNOWN, "unnecessary_moves"),
        "owned_partitions": (_KNOWN, "owned"),
        "excess_squares": (_ANSWERED, f"({_PPM} div 100) * ({_PPM} div 100)"),
    }
    largest = {"largest_excess": "makespan_gap", "largest_excess_ppm": _PPM}
    return rows.groupBy(*_KEYS, "mixed", "assignor").agg(
        *(F.expr(f"count_if({rule})").alias(name) for name, rule in counts.items()),
        *(
            F.expr(f"coalesce(sum(if({rule}, {value}, 0)), 0)").alias(name)
            for name, (rule, value) in sums.items()
        ),
        *(F.expr(f"max(if({_ANSWERED}, {v}, null))").alias(name) for name, v in largest.items()),
    )


def _families(cases: DataFrame) -> DataFrame:
    def number(condition: str) -> Column:
        return F.sum(F.size(F.expr(f"filter(comparisons, c -> {condition})")))

    counts = cases.groupBy(F.col("groups.family").alias("family")).agg(
        F.count("*").alias("groups"),
        F.count_distinct("groups.seed").alias("seeds"),
        F.count_distinct("groups.renaming_hash").alias("distinct"),
        F.expr("count_if(groups.forced)").alias("forced"),
        F.expr("count_if(groups.owned > 0)").alias("with_owners"),
        F.count("groups.error").alias("errors"),
        F.expr("count_if(optima.status = 'optimal')").alias("proven"),
        F.expr("count_if(optima.status <> 'optimal')").alias("unproven"),
        F.expr("count_if(exists(comparisons, c -> c.ending <> 'error'))").alias("compared"),
        F.count("optima").alias("optima"),
        *(F.sum(F.size(name)).alias(name) for name in LISTS),
        number("c.ending = 'error'").alias("comparison_errors"),
        number("c.ending = 'ok' AND c.unnecessary_moves IS NULL").alias("unknown_moves"),
    )
    return counts.join(family_digests(cases), "family")


def _gaps(rows: DataFrame) -> DataFrame:
    """Count the groups by family, assignor and value of each heuristic gap.

    The value is null if the assignor has no result.
    """
    keys, gaps = (
        (*_KEYS, "assignor", "owned", "ending"),
        ("sum_of_squares_gap", "unnecessary_moves"),
    )
    values = rows.where("proven").withColumn("owned", F.expr("owned > 0"))
    known = values.unpivot(keys, gaps, "gap", "value").where("value IS NOT NULL OR ending <> 'ok'")
    return known.groupBy("gap", *_KEYS, "assignor", "owned", "value").agg(
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
    }
    kept = {
        "missed": _MISSED,
        "known": _KNOWN,
        "wasteful": f"{_KNOWN} AND unnecessary_moves > 0",
    }
    values = rows.where(F.expr(_ANSWERED) & F.col("assignor").isin(*compared)).select(
        *(*_KEYS, "assignor"),
        *(F.expr(formula).alias(name) for name, formula in kept.items()),
        *(F.expr(formula).cast("double").alias(name) for name, formula in formulas.items()),
    )
    return (
        values.unpivot((*_KEYS, "assignor", *kept), tuple(formulas), "parameter", "value")
        .where("value IS NOT NULL")
        .groupBy(*_KEYS, "assignor", "parameter", "value")
        .agg(F.count("*").alias("groups"), *(F.count_if(name).alias(name) for name in kept))
    )


def _profiles(rows: DataFrame) -> DataFrame:
    """Count the groups on which each assignor is within a given ratio of the optimum.

    The optimum of moves is the minimum at the imbalance of the assignor, in groups with owned
    partitions. A group without a result of the assignor is within no ratio.
    """
    optima = {name: f"{name}_known" for name in PROFILED} | {"movement": "movement_within"}
    values = ", ".join(f"'{name}', {name}_greedy, {optima[name]}" for name in PROFILED)
    within = (
        F.expr(f"count_if((greedy + 1) / (optimum + 1) <= double('{bound}'))").alias(f"within_{n}")
        for n, bound in enumerate(RATIOS)
    )
    measured = rows.where("proven").selectExpr(
        *_KEYS,
        "assignor",
        "ending",
        "owned",
        f"stack({len(PROFILED)}, {values}) AS (measure, greedy, optimum)",
    )
    known = measured.where(
        "if(measure = 'movement', owned > 0 AND (ending <> 'ok' OR optimum IS NOT NULL), "
        "optimum IS NOT NULL)"
    )
    return known.groupBy(*_KEYS, "measure", "assignor").agg(F.count("*").alias("groups"), *within)


def _worst(rows: DataFrame, all_columns: DataFrame, compared: Sequence[str]) -> DataFrame:
    """Return the groups with the largest gaps per assignor, and the hand-written groups.

    ``all_columns`` has the same rows. Counts of the gaps reject most rows, so that the sort and
    the documents need little memory.
    """
    family, gaps = F.col("family"), ("one", "two", "three")
    keys = ["assignor", "kind", *gaps]
    available = F.col("document").isNotNull() | family.isin(*FAMILIES)
    small = f"partitions <= {DRAWN_PARTITIONS} AND members <= {DRAWN_MEMBERS}"
    # Gaps in weight units are not comparable with gaps in partitions.
    kinds = F.expr("""stack(3,
        'imbalance', weighted, coalesce(-makespan_gap, 1L), coalesce(-sum_of_squares_gap, 1L),
            coalesce(makespan_gap, 0) > 0 OR coalesce(sum_of_squares_gap, 0) > 0,
        'moves', false, -unnecessary_moves, 0L, coalesce(unnecessary_moves > 0, false),
        'endless', false, 0L, 0L, ending = 'nonterminating'
    ) AS (kind, one, two, three, present)""")
    ranked = Window.partitionBy("assignor", "kind")
    rank = F.row_number().over(ranked.orderBy(*gaps, "partitions", "case"))
    columns = (
        *("kind", "rank", F.col("groups").alias("group"), "comparison"),
        F.expr("filter(assignments, a -> a.assignor = assignor)[0].assignment AS assignment"),
        F.col("optima.assignment").alias("optimum"),
    )
    drawable = F.col("assignor").isin(*compared) & available & F.expr(small)

    def candidates(rows: DataFrame) -> DataFrame:
        return rows.where(drawable & (family != NAMED_FAMILY)).select("*", kinds).where("present")

    counts = candidates(rows).groupBy(*keys).agg(F.count("*").alias("groups"))
    larger = F.sum("groups").over(ranked.orderBy(*gaps)) - F.col("groups")
    largest = counts.withColumn("larger", larger).where(F.col("larger") < WORST_CANDIDATES)
    worst = candidates(all_columns).join(F.broadcast(largest.select(*keys)), keys)
    worst = worst.withColumn("rank", rank)
    named = all_columns.where(family == NAMED_FAMILY).withColumns(
        {"kind": F.lit("named"), "rank": F.lit(0)}
    )
    return (
        worst.where(F.col("rank") <= WORST_CANDIDATES)
        .select(*columns)
        .unionAll(named.where(F.col("assignor").isin(*COMPARED_ASSIGNORS)).select(*columns))
    )
