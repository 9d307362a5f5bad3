-- Queries of a rebalance history. A line with one word starts the query of that name.

-- last_groups
-- The rebalance of the last generation of each group with members.
SELECT `group`, generation, document, assigned
FROM {rebalances} JOIN (
  SELECT `group`, max(struct(incarnation, number)) AS last,
    max_by(members, struct(incarnation, number)) AS last_members
  FROM {generations} GROUP BY `group`
) USING (`group`)
WHERE incarnation = last.incarnation AND generation = last.number AND size(last_members) > 0
ORDER BY `group`

-- summaries
-- One row per group. Unassigned topics are subscribed topics without an assigned partition in the last
-- generation. The moves are those of the rebalances with known unnecessary moves.
SELECT `group` AS id, generations, last_generation, rebalances, proven, moves, unnecessary_moves,
  invalid,
  array_sort(array_except(
    flatten(transform(members, m -> coalesce(m.subscription, array()))),
    flatten(transform(members, m -> coalesce(transform(m.assigned, t -> t.topic), array())))
  )) AS unassigned_topics,
  least_imbalance, hindsight_rebalances, moves_made, fewest_at_each, hindsight, hindsight_bound
FROM (
  SELECT `group`, count(*) AS generations,
    max_by(number, struct(incarnation, number)) AS last_generation,
    max_by(members, struct(incarnation, number)) AS members
  FROM {generations} GROUP BY `group`
) LEFT JOIN (
  SELECT `group`, count(*) AS rebalances,
    count(unnecessary_moves) AS proven,
    sum(if(unnecessary_moves IS NULL, NULL, movement_greedy)) AS moves,
    sum(unnecessary_moves) AS unnecessary_moves,
    count_if(ending = 'invalid') AS invalid,
    count_if(least_imbalance) AS least_imbalance
  FROM {rebalances} GROUP BY `group`
) USING (`group`) LEFT JOIN {hindsight} USING (`group`)
ORDER BY `group`
