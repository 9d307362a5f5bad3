"""Find few moves within a maximum load by large neighbourhood search.

Two methods assign the partitions of some members again, at lower cost: a beam search of exchanges,
which is best if almost no capacity remains free, and CP-SAT, which is best otherwise.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kassay.reference.model.assignment import NO_OWNER
from kassay.solver.counting_bounds import min_count
from kassay.solver.evaluation import moves_cost
from kassay.solver.limits import SearchBudget
from kassay.solver.problem import Ints, Placement, Problem

if TYPE_CHECKING:
    from kassay.solver.cpsat.model import Expression


# Of the beam search of exchanges.
_LOOSE_VALUE = 0.3  # estimated number of moves that a loose partition saves
_NOISE = 0.3  # random noise of the score, in moves
_MAX_LOOSE = 14
_MAX_POSTPONED = 4
_MAX_ITEMS = 60  # bits of a mask
_MAX_GIVEN = 4
_MAX_TAKEN = 2
_MAX_MOVES = 6
_ENOUGH = 10  # exchanges; if there are 10, exchanges with more moves are not listed

# Limits per number of moves.
_MAX_SUBSETS = 3_000  # of loose partitions, and of given partitions
_MAX_PAIRS = 400_000  # of given subset and taken subset
_MAX_DRAWN_PAIRS = 300  # of taken partitions
_MAX_RESULTS = 40  # drawn at random


class _Exchange(NamedTuple):
    """Partitions that one member receives and gives away in an exchange."""

    received: tuple[int, ...]
    given: tuple[int, ...]
    taken: tuple[int, ...]
    free_capacity: int


class _BeamState(NamedTuple):
    """Partial solution of the beam search over exchanges."""

    score: float
    cost: int
    slack: int  # capacity that may remain free in the other members
    open: tuple[int, ...]  # members without final loads, in order
    loose: tuple[int, ...]
    left: frozenset[int]  # partitions that left their owners
    placed: tuple[tuple[int, int], ...]  # partition and member
    needs: int  # minimum number of partitions that the open members give


@dataclass
class ExchangeBeam:
    """Beam search for exchanges of partitions among some members.

    Each state has some members with final loads, and loose partitions that left their owners. The
    next member exchanges partitions with the loose ones and with the members that are not final
    yet, such that its load is at most the maximum load and little of its capacity remains free.

    Received partitions are free; each given or taken partition is a move. Sums of loose partitions
    and sums of the others meet in the middle (Horowitz and Sahni, 1974).
    """

    problem: Problem
    costs: Ints
    max_load: int
    members: Sequence[int]  # in the order in which their loads become final
    placement: Placement
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self._weight: list[int] = self.problem.weight.tolist()
        here = np.flatnonzero(np.isin(self.placement, self.members))
        owner = self.problem.owner[here]
        away = here[~np.isin(owner, self.members)]
        self.loose = _at_most(away, _MAX_LOOSE, self.rng)
        stay = np.setdiff1d(away, self.loose)
        self.own: dict[int, list[int]] = {
            member: here[owner == member].tolist() for member in self.members
        }
        self.fixed_load = {
            member: self._load(stay[self.placement[stay] == member].tolist())
            for member in self.members
        }
        costs = self.costs[here[np.isin(owner, self.members)]]
        self.mean_cost = max(float(costs.mean()), 1e-9) if len(costs) else 1.0
        self.least_cost = int(costs.min()) if len(costs) else 0

    def search(self, width: int, budget: int, may_continue: Callable[[], bool]) -> Placement | None:
        """Find a placement with a move cost of at most ``budget``; return None if none is found."""
        loose = tuple(self.loose.tolist())
        total = sum(self.fixed_load.values()) + self._load(loose)
        total += sum(map(self._load, self.own.values()))
        slack = len(self.members) * self.max_load - total
        if slack < 0:
            return None
        needs = sum(self._need(member, frozenset()) for member in self.members)
        states = [_BeamState(0.0, 0, slack, tuple(self.members), loose, frozenset(), (), needs)]
        for _ in self.members:
            following: dict[tuple[frozenset[int], frozenset[int], tuple[int, ...]], _BeamState] = {}
            for state in states:
                for child in self._next_states(state, budget):
                    if not may_continue():
                        return None
                    # States with equal keys differ only in the noise of their scores.
                    following.setdefault((child.left, frozenset(child.loose), child.open), child)
            states = sorted(following.values())[:width]
        return self._read(min(states, key=lambda state: state.cost)) if states else None

    def _read(self, state: _BeamState) -> Placement:
        placement = self.placement.copy()
        for member, own in self.own.items():
            placement[own] = member
        for partition, member in state.placed:
            placement[partition] = member
        return placement

    def _load(self, partitions: Iterable[int]) -> int:
        return sum(self._weight[partition] for partition in partitions)

    def _need(self, member: int, left: frozenset[int]) -> int:
        weights = [self._weight[p] for p in self._owned(member, left)]
        excess = sum(weights) + self.fixed_load[member] - self.max_load
        return min_count(weights, excess) if 0 < excess <= sum(weights) else 0

    def _owned(self, member: int, left: frozenset[int]) -> list[int]:
        return [p for p in self.own[member] if p not in left]

    def _next_states(self, state: _BeamState, budget: int) -> Iterator[_BeamState]:
        for member in state.open[:_MAX_POSTPONED]:
            found = False
            for child in self._children(state, member):
                found = True
                if child.cost + child.needs * self.least_cost <= budget:
                    yield child
            if found:
                return

    def _children(self, state: _BeamState, member: int) -> Iterator[_BeamState]:
        rest = tuple(other for other in state.open if other != member)
        own = self._owned(member, state.left)
        free = self.max_load - self.fixed_load[member] - self._load(own)
        exchanges = self._exchanges(state, member, own, rest, free)
        if not rest:
            exchanges = self._last_exchange(state, member, free)
        for exchange in exchanges:
            yield self._child(state, member, rest, exchange)

    def _last_exchange(self, state: _BeamState, member: int, free: int) -> Iterator[_Exchange]:
        if self._load(state.loose) <= free and all(self._may(p, member) for p in state.loose):
            yield _Exchange(state.loose, (), (), 0)

    def _exchanges(
        self, state: _BeamState, member: int, own: list[int], rest: Sequence[int], free: int
    ) -> Iterator[_Exchange]:
        """Yield exchanges that leave little free capacity at a member."""
        usable = [p for p in state.loose if self._may(p, member)]
        required = [p for p in state.loose if not any(self._may(p, other) for other in rest)]
        if not set(required) <= set(usable):
            return
        takeable = [p for other in rest for p in self._owned(other, state.left)]
        exchanges = _MemberExchanges(
            weight=self.problem.weight,
            loose=np.array([p for p in usable if p not in required], dtype=np.int64),
            required=tuple(required),
            own=np.array(own, dtype=np.int64),
            takeable=np.array([p for p in takeable if self._may(p, member)], dtype=np.int64),
        )
        allowed = min(state.slack, max(1, 2 * state.slack // (len(rest) + 1)))
        yield from exchanges.within(free - allowed, free, self.rng)

    def _may(self, partition: int, member: int) -> bool:
        return bool(self.problem.may_consume[self.problem.consumer_set[partition], member])

    def _child(
        self, state: _BeamState, member: int, rest: tuple[int, ...], exchange: _Exchange
    ) -> _BeamState:
        moved = exchange.given + exchange.taken
        cost = state.cost + sum(int(self.costs[p]) for p in moved)
        left = state.left.union(moved)
        received = frozenset(exchange.received)
        loose = tuple(p for p in state.loose if p not in received) + exchange.given
        needs = state.needs - self._need(member, state.left)
        for owner in {int(self.problem.owner[p]) for p in exchange.taken}:
            needs += self._need(owner, left) - self._need(owner, state.left)
        score = (
            cost / self.mean_cost + needs - _LOOSE_VALUE * len(loose) + _NOISE * self.rng.random()
        )
        placed = tuple((p, member) for p in exchange.received + exchange.taken)
        slack = state.slack - exchange.free_capacity
        return _BeamState(score, cost, slack, rest, loose, left, state.placed + placed, needs)


class _Subsets(NamedTuple):
    """Subsets as bit masks, in ascending order of their total weights."""

    total: Ints
    mask: Ints
    size: Ints


@dataclass(frozen=True, slots=True)
class _MemberExchanges:
    """Partitions that one member may exchange with other members."""

    weight: Ints  # of all partitions of the problem
    loose: Ints  # partitions without a member that this member may receive
    required: tuple[int, ...]  # loose partitions that this member must receive
    own: Ints
    takeable: Ints  # owned by others

    def within(self, low: int, high: int, rng: np.random.Generator) -> Iterator[_Exchange]:
        """Yield exchanges with a load change from ``low`` to ``high``, fewest moves first."""
        fixed = int(self.weight[list(self.required)].sum())
        low, high = low - fixed, high - fixed
        loose, own = _at_most(self.loose, _MAX_ITEMS, rng), _at_most(self.own, _MAX_ITEMS, rng)
        received = _small_subsets(self.weight[loose], _MAX_ITEMS)
        gifts = _small_subsets(-self.weight[own], _MAX_GIVEN)
        found = 0
        for moves in range(_MAX_MOVES + 1):
            for count in range(min(moves, _MAX_TAKEN) + 1):
                partial = np.flatnonzero(gifts.size == moves - count)
                taken = self._taken(count, len(partial), rng)
                if not len(partial) or not len(taken):
                    continue
                change = np.add.outer(gifts.total[partial], self.weight[taken].sum(axis=1)).ravel()
                pairs = _matches(received.total, low - change, high - change, rng)
                found += len(pairs)
                for first, second in pairs:
                    at, pick = divmod(second, len(taken))
                    yield _Exchange(
                        self.required + _items(loose, int(received.mask[first])),
                        _items(own, int(gifts.mask[partial[at]])),
                        tuple(taken[pick].tolist()),
                        high - int(change[second]) - int(received.total[first]),
                    )
            if found >= _ENOUGH:
                return

    def _taken(self, count: int, gifts: int, rng: np.random.Generator) -> Ints:
        """Return sets of ``count`` partitions to take from other members, one set per row."""
        if count == 0:
            return np.zeros((1, 0), dtype=np.int64)
        most = _MAX_PAIRS // max(gifts, 1)
        if count == 1:
            return _at_most(self.takeable, most, rng)[:, None]
        if len(self.takeable) < count:
            return np.zeros((0, count), dtype=np.int64)
        rows = rng.integers(len(self.takeable), size=(min(most, _MAX_DRAWN_PAIRS), count))
        return self.takeable[rows[rows[:, 0] < rows[:, 1]]]


def _at_most(items: Ints, count: int, rng: np.random.Generator) -> Ints:
    if len(items) <= count:
        return items
    return np.sort(rng.choice(items, count, replace=False))


def _items(items: Ints, mask: int) -> tuple[int, ...]:
    return tuple(item for at, item in enumerate(items.tolist()) if mask >> at & 1)


def _small_subsets(weights: Ints, max_size: int) -> _Subsets:
    """List subsets of weights in ascending order of size, up to a maximum number."""
    total, mask = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    highest = np.full(1, -1)
    parts = [(total, mask)]
    count = 1
    items = np.arange(len(weights))
    for _ in range(min(max_size, len(weights))):
        at, item = np.nonzero(highest[:, None] < items[None, :])
        count += len(at)
        if not len(at) or count > _MAX_SUBSETS:
            break
        total, mask, highest = total[at] + weights[item], mask[at] | (1 << item), item
        parts.append((total, mask))
    sizes = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
    totals, masks = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(totals, kind="stable")
    return _Subsets(totals[order], masks[order], sizes[order])


def _matches(
    ascending: Ints, low: Ints, high: Ints, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """Return index pairs of values and ranges that contain them; sample many pairs."""
    start = np.searchsorted(ascending, low, side="left")
    ends = np.cumsum(np.searchsorted(ascending, high, side="right") - start)
    total = int(ends[-1])
    numbers = np.arange(total) if total <= _MAX_RESULTS else rng.integers(total, size=_MAX_RESULTS)
    second = np.searchsorted(ends, numbers, side="right")
    first = start[second] + numbers - np.where(second > 0, ends[second - 1], 0)
    return list(zip(first.tolist(), second.tolist(), strict=True))


_TIGHT = 0.05
"""Free capacity per member, as a share of the mean weight, up to which exchanges are best.
In two groups without free capacity, they need 26 moves instead of 71 by CP-SAT, and 18 instead of
45."""
_EXCHANGES, _CPSAT = 0, 1
_TIGHT_TURNS, _ROOMY_TURNS = (8, 1), (1, 40)
"""Ratio of exchange searches to CP-SAT searches, with little and with much free capacity."""
_BEAM_WIDTH, _MAX_BEAM_MEMBERS = 4, 60  # width of the beam search, and maximum number of members
_LINKED = 0.9
"""Probability to choose two members of one move, of which one is already chosen."""
_MEMBERS = 5  # maximum number of members of a search of CP-SAT
_MAX_DRAWS = 40
"""Maximum number of random moves that choose the members; there may be fewer members."""
_MAX_PARTITIONS = 260  # maximum number of partitions of a search of CP-SAT
_STOP_DRAWING = 0.05  # probability that no further moves are drawn
_WORK, _WORK_OF_MODEL = 0.5, 0.01
"""Maximum work of one search of CP-SAT, and work to build its model."""


@dataclass
class NeighbourhoodSearch:
    """Large neighbourhood search for few moves within a maximum load and constraints."""

    problem: Problem
    max_load: int
    costs: Ints
    rng: np.random.Generator
    budget: SearchBudget = field(default_factory=lambda: SearchBudget(inf))
    is_permitted: Callable[[Placement], bool] = lambda _: True
    """Whether a placement meets the constraints."""
    found: list[tuple[float, int]] = field(init=False, default_factory=list)
    """Work spent until each improvement, and the cost of the improved placement."""

    def initial_solution(
        self, start: Placement, may_continue: Callable[[], bool] = lambda: True
    ) -> Placement | None:
        """Find a first placement within the maximum load; return None if none is found."""
        removal = _OverloadRemoval(self.problem, self.max_load, start.copy())
        if removal.run(may_continue):
            return removal.placement
        if self.problem.member_count > _MAX_BEAM_MEMBERS:
            return None
        members = self._by_load(start, range(self.problem.member_count))
        max_cost = self.problem.partition_count * int(self.costs.max(initial=0))
        return self._beam(start, members).search(1, max_cost, may_continue)

    def improve(
        self, placement: Placement, bound: int, may_continue: Callable[[], bool]
    ) -> Placement:
        """Reduce the cost of a placement towards a lower bound, by exchanges and CP-SAT.

        The search with more improvements per call runs more often.
        """
        best, cost = placement, self.cost(placement)
        slack = self.max_load * self.problem.member_count - self.problem.total
        is_tight = slack < _TIGHT * self.problem.total / len(placement) * self.problem.member_count
        shares = _TIGHT_TURNS if is_tight else _ROOMY_TURNS
        turns, gains = [0, 0], [0, 0]
        while cost > bound and may_continue():
            method = min(
                (_EXCHANGES, _CPSAT),
                key=lambda at: (1 + turns[at]) / (shares[at] * (1 + gains[at])),
            )
            turns[method] += 1
            if method == _EXCHANGES:
                following = self._exchanged(best, may_continue)
            else:
                following = self._reassigned(best)
            if following is None or (reached := self.cost(following)) > cost:
                continue
            if not self.is_permitted(following):
                continue
            if reached < cost:
                gains[method] += 1
                self.found.append((self.budget.counter.spent, reached))
            best, cost = following, reached
        return best

    def cost(self, placement: Placement) -> int:
        """Return the cost of all moves of a placement."""
        return moves_cost(self.problem, self.costs, placement)

    def _exchanged(
        self, placement: Placement, may_continue: Callable[[], bool]
    ) -> Placement | None:
        members = self._by_load(placement, self._linked_members(placement))
        among_members = np.isin(placement, members) & np.isin(self.problem.owner, members)
        inside = np.where(among_members, placement, self.problem.owner)
        beam = self._beam(placement, members)
        return beam.search(_BEAM_WIDTH, self.cost(inside), may_continue)

    def _beam(self, placement: Placement, members: list[int]) -> ExchangeBeam:
        return ExchangeBeam(self.problem, self.costs, self.max_load, members, placement, self.rng)

    def _by_load(self, placement: Placement, members: Iterable[int]) -> list[int]:
        problem = self.problem
        home = np.where(np.isin(problem.owner, [*members]), problem.owner, placement)
        loads = np.array(problem.loads(home), dtype=np.float64)
        loads += self.rng.normal(0, 0.05, len(loads)) * loads.mean()
        return sorted(members, key=lambda at: -loads[at])

    def _linked_members(self, placement: Placement) -> list[int]:
        owner, width = self.problem.owner, self.problem.member_count
        moved = np.flatnonzero((owner != NO_OWNER) & (owner != placement))
        count = int(self.rng.integers(2, min(width, _MAX_BEAM_MEMBERS) + 1)) if width > 2 else width
        chosen = {int(self.rng.integers(width)): None}
        while len(chosen) < count:
            linked = self._linked(placement, moved, chosen)
            if len(linked) and self.rng.random() < _LINKED:
                self._add_both_members(placement, linked, chosen)
            else:
                chosen[int(self.rng.integers(width))] = None
        return list(chosen)

    def _choose_members(self, placement: Placement) -> list[int]:
        owner = self.problem.owner
        moved = np.flatnonzero((owner != NO_OWNER) & (owner != placement) & (self.costs > 0))
        chosen: dict[int, None] = {}
        for _ in range(_MAX_DRAWS):
            if len(chosen) >= _MEMBERS - 1 or not len(moved):
                break
            self._add_both_members(placement, moved, chosen)
            linked = self._linked(placement, moved, chosen)
            if not len(linked):
                continue
            self._add_both_members(placement, linked, chosen)
            if self.rng.random() < _STOP_DRAWING:
                break
        chosen[int(self.rng.integers(self.problem.member_count))] = None
        return list(chosen)

    def _linked(self, placement: Placement, moved: Ints, chosen: Iterable[int]) -> Ints:
        near = np.array(list(chosen))
        return moved[np.isin(self.problem.owner[moved], near) ^ np.isin(placement[moved], near)]

    def _add_both_members(self, placement: Placement, moved: Ints, chosen: dict[int, None]) -> None:
        partition = int(self.rng.choice(moved))
        chosen[int(self.problem.owner[partition])] = chosen[int(placement[partition])] = None

    def _reassigned(self, placement: Placement) -> Placement | None:
        """Reassign the partitions of some members by CP-SAT; return None if that fails."""
        members = self._choose_members(placement)
        if np.count_nonzero(np.isin(placement, members)) > _MAX_PARTITIONS or len(members) < 2:
            return None
        # Loading OR-Tools takes longer than all other searches of a small group.
        from ortools.sat.python import cp_model  # noqa: PLC0415

        from kassay.solver.cpsat.model import load_scale, run_cpsat, weighted_sum  # noqa: PLC0415

        problem, scale = self.problem, load_scale(self.problem)
        model = cp_model.CpModel()
        loads: dict[int, list[tuple[Expression, int]]] = {at: [] for at in members}
        cost: list[tuple[Expression, int]] = []
        choice: dict[tuple[int, int], cp_model.IntVar] = {}
        for partition in np.flatnonzero(np.isin(placement, members)).tolist():
            owner = int(problem.owner[partition])
            # Weights rounded up keep the maximum load.
            weight = scale.quotient(int(problem.weight[partition]), rounds_up=True)
            allowed = problem.may_consume[problem.consumer_set[partition]]
            consumers = [at for at in members if allowed[at]]
            for at in consumers:
                choice[partition, at] = variable = model.new_bool_var("")
                model.add_hint(variable, int(placement[partition] == at))
                loads[at].append((variable, weight))
                if owner in members and at != owner:
                    cost.append((variable, int(self.costs[partition])))
            model.add_exactly_one(choice[partition, at] for at in consumers)
        most = scale.quotient(self.max_load)
        for terms in loads.values():
            model.add_linear_constraint(weighted_sum(terms), 0, most)
        model.minimize(weighted_sum(cost))
        self.budget.spend(_WORK_OF_MODEL)
        solver, status = run_cpsat(model, self.budget.until(_WORK))
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None
        reassigned = placement.copy()
        for (partition, at), variable in choice.items():
            if solver.value(variable):
                reassigned[partition] = at
        return reassigned


@dataclass
class _OverloadRemoval:
    """Greedy search that moves partitions away from overloaded members.

    The lightest partition that ends the overload of its member moves first, otherwise the heaviest
    one. If none can move, the member exchanges a partition for a lighter one.
    """

    problem: Problem
    max_load: int
    placement: Placement  # changed in place

    def __post_init__(self) -> None:
        self.loads = np.array(self.problem.loads(self.placement), dtype=np.int64)

    def run(self, may_continue: Callable[[], bool]) -> bool:
        """Move partitions away from overloaded members; return whether all overloads ended."""
        failed = np.zeros(self.problem.member_count, dtype=np.bool_)
        while (waiting := (self.loads > self.max_load) & ~failed).any():
            if not may_continue():
                return False
            overloaded = int(np.where(waiting, self.loads, -1).argmax())
            if not self._move_one(overloaded):
                failed[overloaded] = not self._swap_one(overloaded)
        return not failed.any()

    def _move_one(self, overloaded: int) -> bool:
        loads = self.loads
        partitions = np.flatnonzero(self.placement == overloaded)
        weights = self.problem.weight[partitions]
        free_capacity = np.where(self.problem.may_consume, self.max_load - loads, -1)
        free_capacity[:, overloaded] = -1
        fits = weights <= free_capacity[self.problem.consumer_set[partitions]].max(axis=1)
        if not (fits & (weights > 0)).any():
            return False
        enough = fits & (weights >= loads[overloaded] - self.max_load)
        if enough.any():
            at = int(np.where(enough, weights, np.iinfo(np.int64).max).argmin())
        else:
            at = int(np.where(fits, weights, -1).argmax())
        rooms = free_capacity[self.problem.consumer_set[partitions[at]]]
        fitting = np.where(rooms >= weights[at], rooms, np.iinfo(np.int64).max)
        self._move(int(partitions[at]), int(fitting.argmin()))
        return True

    def _swap_one(self, overloaded: int) -> bool:
        """Exchange a partition of an overloaded member for a lighter partition."""
        problem, placement, loads = self.problem, self.placement, self.loads
        weight, sets, may_consume = problem.weight, problem.consumer_set, problem.may_consume
        best: tuple[int, int, int] | None = None
        partitions = np.flatnonzero(placement == overloaded)
        for other in np.argsort(loads, kind="stable")[: max(8, len(loads) // 3)].tolist():
            if other == overloaded:
                continue
            candidates = np.flatnonzero(placement == other)
            change = weight[partitions][:, None] - weight[candidates][None, :]
            allowed = (change > 0) & (change <= self.max_load - loads[other])
            allowed &= may_consume[sets[partitions], other][:, None]
            allowed &= may_consume[sets[candidates], overloaded][None, :]
            if not allowed.any():
                continue
            one, two = np.unravel_index(int(np.where(allowed, change, -1).argmax()), allowed.shape)
            if best is None or change[one, two] > best[0]:
                best = int(change[one, two]), int(partitions[one]), int(candidates[two])
        if best is None:
            return False
        _, given, received = best
        self._move(given, int(placement[received]))
        self._move(received, overloaded)
        return True

    def _move(self, partition: int, target: int) -> None:
        weight = int(self.problem.weight[partition])
        self.loads[self.placement[partition]] -= weight
        self.loads[target] += weight
        self.placement[partition] = target
