"""Moves over event streams, by the rule for the choice among equally good assignments.

``python -m benchmarks.rebalance_rules --first-seed 0 --streams 60`` prints a table. Each rule has
minimum imbalance and the fewest moves at each rebalance; a second cost decides between them.
"""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

from kassay.experiments.implementations.run_assignor import run_until_stable
from kassay.experiments.study.families.event_streams import EVENT_STREAMS
from kassay.reference.model.assignment import Assignment, movement, rejoin
from kassay.reference.model.group import Group
from kassay.solver.limits import SearchLimits
from kassay.solver.network.optimal_flow import level_sets, optimal_counts
from kassay.solver.network.subscription_network import SubscriptionNetwork, build_network
from kassay.solver.problem import Ints, build_problem
from kassay.solver.trajectory.trajectory import optimal_trajectory

_RESAMPLES = 2_000
_SCALE = 1_000  # second cost per square, if it is divided by the mean


@dataclass(frozen=True, slots=True)
class Rule:
    """Second cost of an assignment.

    Parameters
    ----------
    spread
        Partitions whose squared numbers per member count: of a topic, or of a class of topics
        with equal subscribers. None for no such cost.
    relative
        Whether squares are divided by the mean number per subscriber.
    surplus
        1 or -1 if members with few or with many topics prefer the greater load.
    popular
        1 or -1 if members with few or with many topics prefer topics with many subscribers.
    """

    spread: str | None = None
    relative: bool = False
    surplus: int = 0
    popular: int = 0


RULES: Mapping[str, Rule] = {
    "spread topics": Rule("topic"),
    "spread classes": Rule("class"),
    "spread classes, relative": Rule("class", relative=True),
    "greater load: many topics": Rule(surplus=-1),
    "greater load: few topics": Rule(surplus=1),
    "popular topics: many topics": Rule(popular=-1),
    "popular topics: few topics": Rule(popular=1),
    "spread classes, greater load: many topics": Rule("class", surplus=-1),
    "spread classes, greater load: few topics": Rule("class", surplus=1),
    "spread topics, greater load: many topics": Rule("topic", surplus=-1),
}


class LevelSet(NamedTuple):
    """Members of a level set, their greatest load, and their arcs.

    The arcs come from topics that only these members and those of earlier level sets consume.
    """

    members: tuple[int, ...]
    high: int
    arcs: Ints


def optimal_level_sets(network: SubscriptionNetwork) -> list[LevelSet]:
    """Return the level sets of optimal loads, by descending load."""
    counts = optimal_counts(network)
    loads, sets = network.loads(counts), level_sets(network, counts)
    of_member = np.zeros(network.members, dtype=np.int64)
    for level, members in enumerate(sets):
        of_member[list(members)] = level
    of_topic = np.zeros(network.topics, dtype=np.int64)
    np.maximum.at(of_topic, network.tail, of_member[network.head])
    level_of_arc = np.where(network.supply[network.tail] > 0, of_topic[network.tail], -1)
    inside = level_of_arc == of_member[network.head]
    return [
        LevelSet(
            members,
            int(loads[list(members)].max()),
            np.flatnonzero(inside & (level_of_arc == level)),
        )
        for level, members in enumerate(sets)
    ]


def choose(network: SubscriptionNetwork, levels: Sequence[LevelSet], rule: Rule) -> Ints:
    """Return counts with minimum imbalance, the fewest moves, and then the least second cost."""
    counts = np.zeros(len(network.tail), dtype=np.int64)
    for level in levels:
        if len(level.arcs):
            counts[level.arcs] = _flow(network, level, rule)
    return counts


class _Flow:
    """Minimum-cost flow under construction. Nodes are any hashable values."""

    def __init__(self) -> None:
        self.nodes: dict[object, int] = {}
        self.arcs: list[tuple[int, int, int, int]] = []

    def add(self, tail: object, head: object, capacity: int, cost: int) -> int:
        """Add an arc, and return its number."""
        self.arcs.append((self._node(tail), self._node(head), capacity, cost))
        return len(self.arcs) - 1

    def _node(self, key: object) -> int:
        return self.nodes.setdefault(key, len(self.nodes))

    def solve(self, supply: Mapping[int, int], sink: object) -> Ints:
        """Send the supply of each node to the sink, and return the flow of each arc."""
        flow = SimpleMinCostFlow()
        numbers = flow.add_arcs_with_capacity_and_unit_cost(*np.array(self.arcs).T)
        for key, amount in supply.items():
            flow.set_node_supply(self._node(key), amount)
        flow.set_node_supply(self._node(sink), -sum(supply.values()))
        if flow.solve() != SimpleMinCostFlow.OPTIMAL:
            raise RuntimeError("the loads of a level set have no flow")
        return np.asarray(flow.flows(numbers))


def _flow(network: SubscriptionNetwork, level: LevelSet, rule: Rule) -> Ints:
    arcs = [(int(network.tail[a]), int(network.head[a])) for a in level.arcs]
    supply = {tail: int(network.supply[tail]) for tail, _ in arcs}
    consumers: dict[int, tuple[int, ...]] = {}
    for tail, head in zip(network.tail.tolist(), network.head.tolist(), strict=True):
        consumers[tail] = (*consumers.get(tail, ()), head)
    topics = np.bincount(network.head, minlength=len(network.member_ids)).tolist()
    sets = {tail: consumers[tail] if rule.spread == "class" else (tail,) for tail in supply}
    totals: dict[object, int] = {}
    for tail, amount in supply.items():
        totals[sets[tail]] = totals.get(sets[tail], 0) + amount
    partitions = sum(supply.values())
    most_linear = max(topics) * max(map(len, consumers.values()))
    moved = 1 + _SCALE * partitions**2 + 2 * (most_linear + max(topics)) * partitions
    flow = _Flow()
    numbers = []
    for (tail, head), own in zip(arcs, network.owned[level.arcs].tolist(), strict=True):
        linear = most_linear + rule.popular * len(consumers[tail]) * topics[head]
        place = (sets[tail], head)
        numbers.append(flow.add(tail, place, min(own, supply[tail]), linear))
        flow.add(tail, place, supply[tail], linear + moved)
    for own_set, head in dict.fromkeys((sets[tail], head) for tail, head in arcs):
        most = min(totals[own_set], level.high)
        cost = _cost_of_square(rule, totals[own_set])
        for unit in range(1, most + 1) if cost else ():
            flow.add((own_set, head), ("member", head), 1, cost * (2 * unit - 1))
        if not cost:
            flow.add((own_set, head), ("member", head), most, 0)
    for member in level.members:
        flow.add(("member", member), "sink", level.high - 1, 0)
        extra = max(topics) + rule.surplus * topics[member]
        flow.add(("member", member), "sink", 1, moved * (1 + partitions) + extra)
    flows = flow.solve(supply, "sink")
    chosen: Ints = flows[numbers] + flows[np.array(numbers) + 1]
    return chosen


def _cost_of_square(rule: Rule, partitions: int) -> int:
    if rule.spread is None:
        return 0
    return max(1, _SCALE // partitions) if rule.relative else 1


@dataclass(frozen=True, slots=True)
class StreamMoves:
    """Moves of one stream: with hindsight and its bound, and by rule."""

    seed: int
    hindsight: int
    bound: int
    by_rule: Mapping[str, int]
    seconds: Mapping[str, float]


FEWEST = "fewest moves at each rebalance"


ASSIGNORS = ("uniform", "sticky")


def measure(
    seed: int, rules: Mapping[str, Rule], *, max_size: int, limit: float
) -> StreamMoves | None:
    """Measure a stream with mixed subscriptions, or return None for other or large streams."""
    groups = [Group(topics=s.topics, members=s.members) for s in EVENT_STREAMS.stream(seed)]
    if len(groups[0].members) * groups[0].partition_count > max_size:
        return None
    if not any(len({member.subscription for member in group.members}) > 1 for group in groups):
        return None
    best = optimal_trajectory(groups, limits=SearchLimits(time=limit))
    moves, seconds = {FEWEST: sum(best.one_after_the_other)}, {FEWEST: 0.0}
    for name, rule in rules.items():
        start = time.process_time()
        moves[name] = sum(moves_of(groups, partial(by_rule, rule=rule)))
        seconds[name] = time.process_time() - start
    for name in ASSIGNORS:
        start = time.process_time()
        moves[name] = sum(moves_of(groups, partial(by_assignor, assignor=name)))
        seconds[name] = time.process_time() - start
    return StreamMoves(seed, best.moves, best.bound, moves, seconds)


def moves_of(groups: Sequence[Group], choice: Callable[[Group], Assignment]) -> list[int]:
    """Return the moves of each rebalance, if each assignment starts from the previous one."""
    past: Assignment | None = None
    moves = []
    for group in groups:
        owning = group if past is None else rejoin(group, past)
        past = choice(owning)
        moves.append(movement(owning, past))
    return moves


def by_rule(group: Group, rule: Rule) -> Assignment:
    """Return an assignment by a rule."""
    network = build_network(build_problem(group))
    chosen = choose(network, optimal_level_sets(network), rule)
    return network.problem.to_assignment(network.place(chosen))


def by_assignor(group: Group, assignor: str) -> Assignment:
    """Return the stable assignment of an assignor."""
    found = run_until_stable(group, assignor).assignment
    if found is None:
        raise RuntimeError(f"{assignor} has no assignment")
    return found


def shares(streams: Sequence[StreamMoves], name: str) -> tuple[str, str]:
    """Return two percentages with 95% bootstrap intervals over streams.

    The first is the excess above hindsight in per cent of the moves with hindsight. The second is
    the share that is saved of the excess of the fewest moves at each rebalance.
    """
    base = np.array([one.by_rule[FEWEST] for one in streams])
    moves = np.array([one.by_rule[name] for one in streams])
    best = np.array([one.hindsight for one in streams])
    return share(moves - best, best), share(base - moves, base - best)


def share(part: Ints, whole: Ints) -> str:
    """Return a percentage with its 95% bootstrap interval over streams."""
    draws = np.random.default_rng(0).integers(len(part), size=(_RESAMPLES, len(part)))
    ratios = 100 * part[draws].sum(axis=1) / np.maximum(1, whole[draws].sum(axis=1))
    low, high = np.quantile(ratios, [0.025, 0.975])
    return f"{100 * part.sum() / max(1, whole.sum()):.1f} ({low:.1f} to {high:.1f})"


def main() -> None:
    """Measure the rules, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--streams", type=int, default=60)
    parser.add_argument("--time-limit", type=float, default=20.0)
    parser.add_argument("--max-size", type=int, default=500, help="members x partitions")
    parser.add_argument("--rule", action="append", choices=RULES)
    options = parser.parse_args()
    rules = {name: RULES[name] for name in options.rule or RULES}
    streams: list[StreamMoves] = []
    seed = options.first_seed
    while len(streams) < options.streams:
        found = measure(seed, rules, max_size=options.max_size, limit=options.time_limit)
        streams += [] if found is None else [found]
        seed += 1
    proven = [one for one in streams if one.hindsight == one.bound]
    print(f"seeds {options.first_seed} to {seed - 1}: {len(streams)} streams")
    _print_table("streams with a proven hindsight optimum", proven, rules)
    _print_table("all streams", streams, rules)


def _print_table(title: str, streams: Sequence[StreamMoves], rules: Mapping[str, Rule]) -> None:
    best, bound = (sum(getattr(one, name) for one in streams) for name in ("hindsight", "bound"))
    print(f"{title}: {len(streams)}, moves with hindsight {best}, bound {bound}")
    print("| assignments | moves | above hindsight, % | saved excess, % | CPU seconds |")
    print("|---|--:|--:|--:|--:|")
    for name in (FEWEST, *rules, *ASSIGNORS) if streams else ():
        above, saved = shares(streams, name)
        moves = sum(one.by_rule[name] for one in streams)
        seconds = sum(one.seconds[name] for one in streams)
        print(f"| {name} | {moves} | {above} | {saved} | {seconds:.1f} |")


if __name__ == "__main__":
    main()
