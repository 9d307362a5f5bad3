"""Aggregate the cases of a study into summary tables of counts, on Spark.

`kassay report` computes all figures and statistics from these tables. They are exact and small:
their size depends on the number of distinct values, not on the number of cases.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from kassay.experiments.spark.jobs import Row, map_rows, run_concurrently
from kassay.experiments.spark.output_files import PARQUET_OPTIONS
from kassay.experiments.study import tables
from kassay.experiments.study.cases import IMPORTED
from kassay.experiments.study.families.all_families import FAMILIES

_ANSWERED = "proven AND ending = 'ok'"
_KNOWN = f"{_ANSWERED} AND owned > 0 AND unnecessary_moves IS NOT NULL"
_PPM = "1000000 * makespan_gap div greatest(makespan_optimum, 1)"
_KEYS = ("family", "scope")
_CONCURRENT_TABLES = 2  # Spark plans and compiles a query on one core
_DIGESTS = pa.schema([("family", pa.string()), ("sha256", pa.string())])


def write_summary(cases: DataFrame, uri: str) -> dict[str, int]:
    """Write the summary tables of a study. Return the number of rows per study table."""
    rows = _rows(cases)
    outcomes = _written(_outcomes(rows), f"{uri}/outcomes").toPandas()
    compared = tables.compared_assignors(tables.assignors_of(outcomes["assignor"]))
    pairs = solved_pairs(cases.withColumn("scope", _scope()))
    frames = {
        "pairs": pair_counts(pairs, compared),
        "worst": _worst(rows, compared),
        "fronts": front_sums(cases),
        "measures": measure_sums(cases),
        "trajectories": rebalance_sums(cases, "seed", "start_members"),
        "events": rebalance_sums(cases, "event", "period"),
    }
    writes = [partial(_written, frame, f"{uri}/{name}") for name, frame in frames.items()]
    run_concurrently(cases.sparkSession, writes, _CONCURRENT_TABLES)
    families = _written(_families(cases), f"{uri}/families")
    totals = (F.expr(f"coalesce(sum({name}), 0) AS {name}") for name in tables.TABLES)
    [found] = families.agg(*totals).collect()
    return found.asDict()


def _written(table: DataFrame, uri: str) -> DataFrame:
    table.coalesce(1).write.options(**PARQUET_OPTIONS).parquet(uri)
    return table.sparkSession.read.parquet(uri)


def _rows(cases: DataFrame) -> DataFrame:
    """Return one row per assignor and group; skip comparisons that ended with an error."""
    rows = cases.select(
        *("groups", "optima", "assignments", _scope().alias("scope")),
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
        F.when(family == tables.NAMED_FAMILY, tables.APART["named"])
        .when(F.col("groups.weighted"), tables.APART["weights"])
        .when(F.col("groups.racks"), tables.APART["racks"])
        .when(family == IMPORTED, tables.APART["imported"])
        .when(family.isin(finite), tables.APART["finite"])
        .otherwise(tables.GENERATED)
    )


def _outcomes(rows: DataFrame) -> DataFrame:
    """Count the groups by kind of result, and sum their moves and excesses.

    The optimum of all counted groups is proven. Unnecessary moves are known in groups with owned
    partitions in which the fewest moves within the assignor's imbalance are proven; `moves`,
    `unnecessary_moves` and `owned_partitions` are sums over these groups.
    """
    counted = {
        "groups": "proven",
        "answered": _ANSWERED,
        "missed": f"{_ANSWERED} AND NOT coalesce(least_imbalance, false)",
        "missed_maximum": f"{_ANSWERED} AND makespan_gap > 0",
        "known": _KNOWN,
        "wasteful": f"{_KNOWN} AND unnecessary_moves > 0",
        "nonterminating": "proven AND ending = 'nonterminating'",
        "failed": "proven AND ending IN ('failed', 'invalid')",
        "invalid": "proven AND ending = 'invalid'",
        "crashed": "proven AND ending = 'failed' AND contains(detail, '(signal SIG')",
    }
    summed = {
        "excess_ppm": (_ANSWERED, _PPM),  # millionths of the minimum
        "moves": (_KNOWN, "movement_greedy"),
        "unnecessary_moves": (_KNOWN, "unnecessary_moves"),
        "owned_partitions": (_KNOWN, "owned"),
    }
    largest = {"largest_excess": "makespan_gap", "largest_excess_ppm": _PPM}
    return rows.groupBy(*_KEYS, "mixed", "assignor").agg(
        *(F.count_if(F.expr(condition)).alias(name) for name, condition in counted.items()),
        *(
            F.expr(f"coalesce(sum(if({condition}, {value}, 0)), 0)").alias(name)
            for name, (condition, value) in summed.items()
        ),
        *(F.expr(f"max(if({_ANSWERED}, {value}, null))").alias(n) for n, value in largest.items()),
    )


def _families(cases: DataFrame) -> DataFrame:
    """Count the groups, and the rows of all tables, by family."""
    unknown_moves = "c.ending = 'ok' AND c.unnecessary_moves IS NULL"
    counts = (
        "count(*) AS groups",
        "count(DISTINCT groups.seed) AS seeds",
        "count(DISTINCT groups.renaming_hash) AS distinct",
        "count_if(groups.forced) AS forced",
        "count_if(groups.owned > 0) AS with_owners",
        "count(groups.error) AS errors",
        "count_if(optima.status = 'optimal') AS proven",
        "count_if(optima.status <> 'optimal') AS unproven",
        "count_if(exists(comparisons, c -> c.ending <> 'error')) AS compared",
        "count(optima.status) AS optima",
        *(f"sum(size({name}.{tables.TABLES[name].names[1]})) AS {name}" for name in tables.LISTS),
        "sum(size(filter(comparisons, c -> c.ending = 'error'))) AS comparison_errors",
        f"sum(size(filter(comparisons, c -> {unknown_moves}))) AS unknown_moves",
    )
    family = F.col("groups.family").alias("family")
    return cases.groupBy(family).agg(*map(F.expr, counts)).join(_family_digests(cases), "family")


def _family_digests(cases: DataFrame) -> DataFrame:
    """Return the SHA-256 of the sorted digests of the cases of each family.

    Spark sorts the digests of the cases, so that no process has all digests of a family in memory.
    """
    family = F.col("groups.family").alias("family")
    digests = cases.select(family, _case_digest().alias("digest")).repartition("family")
    return map_rows(digests.sortWithinPartitions("family", "digest"), _digest, _DIGESTS)


def _digest(rows: Iterator[Row]) -> Iterator[Row]:
    for family, own in groupby(rows, key=itemgetter("family")):
        yield {"family": family, "sha256": tables.sha256_of_lines(row["digest"] for row in own)}


def _case_digest() -> Column:
    """Return the column with the SHA-256 of the sorted result rows of each case."""

    def text(row: str, names: Sequence[str]) -> str:
        values = (f"coalesce(cast({row}.{name} AS string), '')" for name in names)
        return f"concat_ws('\\t', {', '.join(values)})"

    rows = ", ".join(
        f"transform(filter(coalesce({table}, array()), "
        f"row -> row.assignor <> '{tables.HINDSIGHT}'), row -> {text('row', names)})"
        for table, names in tables.RESULT_FIELDS.items()
    )
    lines = f"{text('groups', tables.GROUP_FIELDS)}, array_sort(concat({rows}))"
    return F.expr(f"sha2(concat_ws('\\n', {lines}), 256)")


def _worst(rows: DataFrame, compared: Sequence[str]) -> DataFrame:
    """Return the groups with the largest gaps per assignor, and the hand-written groups.

    Only groups with a stored document can be drawn.
    """
    named = F.col("family") == tables.NAMED_FAMILY
    rows = rows.where("document IS NOT NULL")
    shortcomings = F.array(
        # Gaps in weight units are not comparable with gaps in partitions.
        _shortcoming(
            "imbalance",
            "coalesce(makespan_gap, 0) > 0 OR coalesce(sum_of_squares_gap, 0) > 0",
            order=("weighted", "makespan_gap", "sum_of_squares_gap"),
        ),
        _shortcoming(
            "moves", "coalesce(unnecessary_moves > 0, false)", order=("false", "unnecessary_moves")
        ),
        _shortcoming("endless", "ending = 'nonterminating'"),
    )
    assignment = "filter(assignments, a -> a.assignor = assignor)[0].assignment"
    stored = F.expr(f"""struct(groups AS group, comparison, {assignment} AS assignment,
        optima.assignment AS optimum)""")
    order = F.struct("shortcoming.order", "partitions", "case")
    worst = (
        rows.where(F.col("assignor").isin(*compared) & ~named)
        .select("*", F.explode(shortcomings).alias("shortcoming"))
        .where("shortcoming.is_present")
        .groupBy("assignor", F.col("shortcoming.kind").alias("kind"))
        .agg(F.min_by(stored, order, tables.WORST_CANDIDATES).alias("stored"))
        .select("kind", F.posexplode("stored").alias("place", "stored"))
        .selectExpr("kind", "place + 1 AS rank", "stored.*")
    )
    hand_written = rows.where(named & F.col("assignor").isin(*tables.COMPARED_ASSIGNORS)).select(
        F.lit("named").alias("kind"), F.lit(0).alias("rank"), stored.alias("stored")
    )
    return worst.unionAll(hand_written.select("kind", "rank", "stored.*"))


def _shortcoming(kind: str, condition: str, *, order: tuple[str, ...] = ("false",)) -> Column:
    """Return whether a row has a shortcoming, and its place in the order of the worst rows.

    ``order`` has a Boolean column, and then gaps. Rows in which it is true are last; the largest
    gaps are first, and unknown gaps are last.
    """
    is_apart, *gaps = (*order, "0L", "0L")[:3]
    places = (F.expr(f"coalesce(-{gap}, 1L)").alias(f"gap_{n}") for n, gap in enumerate(gaps))
    return F.struct(
        F.lit(kind).alias("kind"),
        F.expr(condition).alias("is_present"),
        F.struct(F.expr(is_apart).alias("is_apart"), *places).alias("order"),
    )


_SCOPE = ("family", "scope")


def _rebalances(cases: DataFrame) -> DataFrame:
    """Return the rebalances of event streams, with the moves of the hindsight optimum.

    The first assignment of a stream has no past. The moves are null if a stream has no hindsight
    optimum.
    """
    hindsight = f"filter(rebalances, row -> row.assignor = '{tables.HINDSIGHT}')"
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
