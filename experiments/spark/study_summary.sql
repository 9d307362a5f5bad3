-- Queries of the tables in the summary of a study. A line with one word starts the query of that name.
-- The tables are exact and small: their size depends on the number of distinct values, not on the
-- number of cases.

-- scoped
-- Groups of one scope have comparable results. Groups with weights or racks, groups of finite
-- families, and imported groups are apart.
SELECT *, CASE
    WHEN groups.family = {named} THEN 'hand-written'
    WHEN groups.weighted THEN 'weights'
    WHEN groups.racks THEN 'racks'
    WHEN groups.family = {imported} THEN 'imported'
    WHEN array_contains(:finite, groups.family) THEN 'finite families'
    ELSE 'generated'
  END AS scope
FROM {cases}

-- rows
-- One row per assignor and group, without comparisons that ended with an error.
SELECT *, groups.*, comparison.*
FROM (SELECT groups, optima, assignments, scope, explode(comparisons) AS comparison FROM {scoped})
WHERE comparison.ending <> 'error'

-- outcomes
-- Numbers of groups by kind of result, and sums of their moves and excesses. The optimum of all
-- counted groups is proven. Unnecessary moves are known in groups with owned partitions in which the
-- fewest moves within the assignor's imbalance are proven; moves, unnecessary_moves and
-- owned_partitions are sums over these groups. Values in ppm are millionths of the minimum.
SELECT family, scope, mixed, assignor,
  count_if(proven) AS groups,
  count_if(answered) AS answered,
  count_if(answered AND NOT coalesce(least_imbalance, false)) AS missed,
  count_if(answered AND makespan_gap > 0) AS missed_maximum,
  count_if(known) AS known,
  count_if(known AND unnecessary_moves > 0) AS wasteful,
  count_if(proven AND ending = 'nonterminating') AS nonterminating,
  count_if(proven AND ending IN ('failed', 'invalid')) AS failed,
  count_if(proven AND ending = 'invalid') AS invalid,
  count_if(proven AND ending = 'failed' AND contains(detail, '(signal SIG')) AS crashed,
  min(if(proven AND ending <> 'ok', translate(left(concat_ws(': ', `case`, detail), 160), '\n', ' '), null)) AS failure,
  coalesce(sum(if(answered, ppm, 0)), 0) AS excess_ppm,
  coalesce(sum(if(known, movement_greedy, 0)), 0) AS moves,
  coalesce(sum(if(known, unnecessary_moves, 0)), 0) AS unnecessary_moves,
  coalesce(sum(if(known, owned, 0)), 0) AS owned_partitions,
  max(if(answered, makespan_gap, null)) AS largest_excess,
  max(if(answered, ppm, null)) AS largest_excess_ppm
FROM (
  SELECT *,
    proven AND ending = 'ok' AS answered,
    proven AND ending = 'ok' AND owned > 0 AND unnecessary_moves IS NOT NULL AS known,
    1000000 * makespan_gap div greatest(makespan_optimum, 1) AS ppm
  FROM {rows}
)
GROUP BY family, scope, mixed, assignor

-- families
-- Numbers of groups, and of the rows of all tables.
SELECT groups.family AS family,
  count(*) AS groups,
  count(DISTINCT groups.seed) AS seeds,
  count(DISTINCT groups.renaming_hash) AS distinct,
  count_if(groups.forced) AS forced,
  count_if(groups.owned > 0) AS with_owners,
  count(groups.error) AS errors,
  count_if(optima.status = 'optimal') AS proven,
  count_if(optima.status <> 'optimal') AS unproven,
  count_if(exists(comparisons, c -> c.ending <> 'error')) AS compared,
  count(optima.status) AS optima,
  sum(size(assignments.assignor)) AS assignments,
  sum(size(comparisons.assignor)) AS comparisons,
  sum(size(timings.contestant)) AS timings,
  sum(size(rebalances.event)) AS rebalances,
  sum(size(front_distances.on_front)) AS front_distances,
  sum(size(measures.measure)) AS measures,
  sum(size(filter(comparisons, c -> c.ending = 'error'))) AS comparison_errors,
  sum(size(filter(comparisons, c -> c.ending = 'ok' AND c.unnecessary_moves IS NULL))) AS unknown_moves
FROM {cases}
GROUP BY groups.family

-- drawn
-- The rows whose groups a report can draw, with the data of the drawing.
SELECT *, struct(
    groups AS `group`,
    comparison,
    filter(assignments, a -> a.assignor = assignor)[0].assignment AS assignment,
    optima.assignment AS optimum
  ) AS stored
FROM {rows}
WHERE document IS NOT NULL

-- worst
-- The groups with the largest gaps per assignor and kind of shortcoming, without hand-written groups.
-- Gaps in weight units are not comparable with gaps in partitions, so weighted groups are last.
SELECT kind, place + 1 AS rank, stored.*
FROM (
  SELECT kind, posexplode(stored) AS (place, stored)
  FROM (
    SELECT assignor, shortcoming.kind AS kind, min_by(
        stored, struct(shortcoming.is_apart, shortcoming.first, shortcoming.second, partitions, `case`),
        {candidates}
      ) AS stored
    FROM (
      SELECT *, explode(array(
          struct(
            'imbalance' AS kind,
            coalesce(makespan_gap, 0) > 0 OR coalesce(sum_of_squares_gap, 0) > 0 AS is_present,
            weighted AS is_apart,
            coalesce(-makespan_gap, 1L) AS first,
            coalesce(-sum_of_squares_gap, 1L) AS second
          ),
          struct(
            'moves' AS kind,
            coalesce(unnecessary_moves > 0, false) AS is_present,
            false AS is_apart,
            coalesce(-unnecessary_moves, 1L) AS first,
            0L AS second
          ),
          struct(
            'endless' AS kind,
            ending = 'nonterminating' AS is_present,
            false AS is_apart,
            0L AS first,
            0L AS second
          )
        )) AS shortcoming
      FROM {drawn}
      WHERE array_contains(:compared, assignor) AND family <> {named}
    )
    WHERE shortcoming.is_present
    GROUP BY assignor, shortcoming.kind
  )
)

-- rebalances
-- Rebalances of event streams, with the moves of the hindsight optimum, which are null if a stream has
-- none. The first assignment of a stream has no past. A period is a sequence of ten rebalances.
SELECT *, try_element_at(hindsight, rebalance) AS hindsight_moves, (rebalance - 1) div 10 AS period
FROM (
  SELECT groups.family, groups.seed, groups.members AS start_members,
    map_from_entries(transform(
      filter(rebalances, row -> row.assignor = {hindsight}), row -> struct(row.rebalance, row.moves)
    )) AS hindsight,
    inline(rebalances)
  FROM {cases}
)
WHERE rebalance > 0

-- rebalance_sums
SELECT family, assignor, mixed, $keys,
  count(*) AS rebalances,
  count_if(ending <> 'ok') AS failed,
  sum(owned) AS owned,
  coalesce(sum(moves), 0) AS moves,
  coalesce(sum(if(moves IS NULL, 0, fewest_moves)), 0) AS fewest_moves,
  count_if(fewest_moves_within IS NOT NULL) AS known,
  sum(if(fewest_moves_within IS NOT NULL, owned, 0)) AS known_owned,
  sum(if(fewest_moves_within IS NOT NULL, moves - fewest_moves_within, 0)) AS unnecessary_moves,
  count_if(moves > fewest_moves_within) AS with_unnecessary_moves,
  count_if(makespan > least_makespan) AS above_least_makespan,
  count_if(sum_of_squares > least_sum_of_squares) AS above_least_squares,
  sum(if(makespan IS NULL, 0, least_makespan)) AS least_makespan,
  coalesce(sum(makespan - least_makespan), 0) AS excess,
  coalesce(max(makespan - least_makespan), 0) AS largest_excess,
  count(hindsight_moves) AS with_hindsight,
  coalesce(sum(hindsight_moves), 0) AS hindsight_moves,
  coalesce(sum(coalesce(moves, 0) - hindsight_moves), 0) AS above_hindsight
FROM {rebalances}
GROUP BY family, assignor, mixed, $keys

-- fronts
-- Distances to the front of three criteria, of groups with racks and owners. same_racks is about moves
-- if off-rack reads must not increase, any_racks if they may, and no_racks about moves in the same
-- groups without racks.
SELECT family, assignor,
  count(*) AS groups,
  count(on_front) AS front_known,
  count_if(on_front) AS on_front,
  sum(owned) AS owned,
  sum(partitions) AS partitions,
  sum(moves) AS moves,
  sum(off_rack) AS off_rack,
  count(same_racks) AS same_racks_known,
  count_if(same_racks > 0) AS same_racks_groups,
  coalesce(sum(same_racks), 0) AS same_racks,
  count(any_racks) AS any_racks_known,
  count_if(any_racks > 0) AS any_racks_groups,
  coalesce(sum(any_racks), 0) AS any_racks,
  count(no_racks) AS no_racks_known,
  count_if(no_racks > 0) AS no_racks_groups,
  coalesce(sum(no_racks), 0) AS no_racks,
  count(avoidable_reads) AS avoidable_reads_known,
  count_if(avoidable_reads > 0) AS avoidable_reads_groups,
  coalesce(sum(avoidable_reads), 0) AS avoidable_reads,
  count(avoidable_imbalance) AS avoidable_imbalance_known,
  count_if(avoidable_imbalance > 0) AS avoidable_imbalance_groups,
  coalesce(sum(avoidable_imbalance), 0) AS avoidable_imbalance
FROM (
  SELECT *,
    if(moves_within = moves_bound, moves - moves_within, null) AS same_racks,
    moves - fewest_moves AS any_racks,
    moves_without_racks - fewest_moves_without_racks AS no_racks,
    if(off_rack_within = off_rack_bound, off_rack - off_rack_within, null) AS avoidable_reads,
    if(imbalance_within = imbalance_bound, imbalance - imbalance_within, null) AS avoidable_imbalance
  FROM (SELECT groups.family, groups.owned, groups.partitions, inline(front_distances) FROM {cases})
)
GROUP BY family, assignor

-- measures
-- Measures of other kinds of groups, and prices of goals. The excess above the minimum is known if the
-- minimum is proven, and relative to it, in millionths, if it is not 0.
SELECT family, assignor, measure,
  count(*) AS answers,
  sum(value) AS value,
  count(excess) AS proven,
  count_if(excess > 0) AS above,
  coalesce(sum(excess), 0) AS excess,
  coalesce(max(excess), 0) AS largest_excess,
  coalesce(sum(if(minimum = 0, 0, 1000000 * excess div minimum)), 0) AS excess_ppm,
  coalesce(max(if(minimum = 0, 0, 1000000 * excess div minimum)), 0) AS largest_ppm
FROM (
  SELECT *, if(minimum = bound, value - minimum, null) AS excess
  FROM (SELECT groups.family, inline(measures) FROM {cases})
)
GROUP BY family, assignor, measure

-- run_times
-- Quantiles of the run time per group of each assignor, in seconds, with first runs apart.
SELECT contestant,
  count(DISTINCT `case`) AS runs,
  percentile(if(is_first, null, seconds), 0.5) AS median,
  percentile(if(is_first, null, seconds), 0.95) AS upper,
  percentile(if(is_first, seconds, null), 0.5) AS first
FROM (SELECT groups.`case`, inline(timings) FROM {cases})
GROUP BY contestant

-- pairs
-- Cases for each pair of compared assignors that both have a result, by both assignors' results.
SELECT family, scope,
  one.assignor AS before,
  two.assignor AS after,
  one.least AS least_before,
  two.least AS least_after,
  if(owned > 0, two.moves - one.moves, null) AS difference,
  count(*) AS groups
FROM (
  SELECT *, explode(rows) AS two
  FROM (
    SELECT *, explode(rows) AS one
    FROM (
      SELECT groups.family, scope, groups.owned, transform(
          filter(comparisons, c -> c.proven AND c.ending = 'ok'),
          c -> struct(
            c.assignor,
            coalesce(c.least_imbalance, false) AS least,
            c.unnecessary_moves AS moves,
            array_position(:compared, c.assignor) AS place
          )
        ) AS rows
      FROM {scoped}
    )
  )
)
WHERE one.place > 0 AND one.place < two.place
GROUP BY ALL
