"""Explain why an assignment is not optimal, as chains of transfers."""

from dataclasses import dataclass

from kassay.reference.model.assignment import Assignment, movement
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import require_group, require_single_copies
from kassay.reference.model.metrics import sum_of_squares
from kassay.solver.improvement.transfer_chains import Transfer, apply_chain, improving_chain
from kassay.solver.limits import SearchLimits


@dataclass(frozen=True, slots=True)
class Explanation:
    """One improving chain of transfers, and its effect on imbalance and movement.

    Parameters
    ----------
    members
        Load of every member in the chain: (member, before, after).
    moves
        Change in movement.
    imbalance
        Sum of squared numbers of partitions, or maximum load: (before, after).
    """

    transfers: tuple[Transfer, ...]
    members: tuple[tuple[str, float, float], ...]
    moves: int
    imbalance: tuple[float, float]

    @property
    def loads(self) -> tuple[tuple[str, float, float], ...]:
        """Return the members with a changed load, with their loads before and after."""
        return tuple(member for member in self.members if member[1] != member[2])

    @property
    def is_direct(self) -> bool:
        """Return whether the chain is one transfer that lowers the imbalance.

        The giver then has at least two partitions more than the taker. Kafka's sticky assignors
        search only for such transfers.
        """
        before, after = self.imbalance
        return len(self.transfers) == 1 and after < before

    def __str__(self) -> str:
        """Describe the chain of transfers and its effect in one sentence."""
        chain = ", ".join(str(transfer) for transfer in self.transfers)
        changes = [
            f"{member} {'drops' if after < before else 'rises'} from {before} to {after}"
            for member, before, after in self.loads
        ] or ["no load changes"]
        return f"{chain}: {', '.join([*changes, _moves_text(self.moves)])}"


def explain(
    group: Group, assignment: Assignment, *, limits: SearchLimits | float = SearchLimits()
) -> tuple[Explanation, ...]:
    """Explain why an assignment is not optimal, as chains of transfers that improve it.

    Each step is a chain that lowers the imbalance, a shortest one up to 32 transfers; if there is
    none, a chain that lowers movement. Weights are ignored.

    All steps together lead to an optimal assignment; an optimal one has no step. If ``limits``
    has an event that stops the search, further steps are missing.

    Raises
    ------
    UsageError
        If the assignment is not valid for the group, or partitions can have several members.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> members = (
    ...     Member(id="a", subscription=("t",), owned=[("t", 0), ("t", 1)]),
    ...     Member(id="b", subscription=("t",)),
    ... )
    >>> group = Group(topics=(Topic(name="t", partitions=2),), members=members)
    >>> for step in explain(group, Assignment({"a": [("t", 0), ("t", 1)]})):
    ...     print(step)
    a gives t-0 to b: a drops from 2 to 1, b rises from 0 to 1, 1 move more than ...
    """
    require_group(group)
    require_single_copies(group)
    limits = SearchLimits.of(limits)
    steps: list[Explanation] = []
    while not limits.is_stopped and (chain := improving_chain(group, assignment)):
        better = apply_chain(group, assignment, chain)
        old, new = assignment.loads(), better.loads()
        members = dict.fromkeys([chain[0].giver, *(transfer.taker for transfer in chain)])
        step = Explanation(
            transfers=chain,
            members=tuple((member, old.get(member, 0), new[member]) for member in members),
            moves=movement(group, better) - movement(group, assignment),
            imbalance=(sum_of_squares(old.values()), sum_of_squares(new.values())),
        )
        steps.append(step)
        assignment = better
    return tuple(steps)


def _moves_text(moves: int) -> str:
    if moves == 0:
        return "as many moves as without this step"
    noun, more = "move" if abs(moves) == 1 else "moves", "more" if moves > 0 else "fewer"
    return f"{abs(moves)} {noun} {more} than without this step"
