"""Why an assignment is not optimal, in words."""

from dataclasses import dataclass

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import movement, sum_of_squares
from kassay.solver.improvement.transfer_chains import Transfer, apply_chain, improving_chain


@dataclass(frozen=True, slots=True)
class Explanation:
    """One improving chain of transfers and what it does.

    Parameters
    ----------
    transfers
        The chain, in order.
    members
        (member, before, after) of every member along the chain: its load, in partitions.
    moves
        Change in movement: how many more partitions are away from their owners.
    imbalance
        (before, after), sum of squared loads.
    """

    transfers: tuple[Transfer, ...]
    members: tuple[tuple[str, int, int], ...]
    moves: int
    imbalance: tuple[int, int]

    @property
    def loads(self) -> tuple[tuple[str, int, int], ...]:
        """Of the members whose load changes: (member, before, after)."""
        return tuple(member for member in self.members if member[1] != member[2])

    @property
    def is_direct(self) -> bool:
        """Whether it is one transfer between members whose loads differ by two or more.

        Kafka's sticky assignors look for such transfers and for no others.
        """
        before, after = self.imbalance
        return len(self.transfers) == 1 and after < before

    def __str__(self) -> str:
        """Say it in a sentence."""
        chain = ", ".join(str(transfer) for transfer in self.transfers)
        changes = [
            f"{member} {'drops' if after < before else 'rises'} from {before} to {after}"
            for member, before, after in self.loads
        ] or ["all loads stay"]
        return f"{chain}: {', '.join([*changes, _moves_in_words(self.moves)])}"


def explain(group: Group, assignment: Assignment) -> tuple[Explanation, ...]:
    """Improve an assignment step by step until it is optimal, and explain every step.

    Each step is a shortest chain of those that lower the imbalance; once there are none,
    of those that lower the movement. Counts partitions, whatever they weigh.

    Returns
    -------
    tuple of Explanation
        The steps in order; empty if the assignment is optimal.

    Raises
    ------
    ValueError
        If the assignment is not valid for the group.

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
    a gives t-0 to b: a drops from 2 to 1, b rises from 0 to 1, one more owned partition moves
    """
    steps: list[Explanation] = []
    while chain := improving_chain(group, assignment):
        better = apply_chain(group, assignment, chain)
        steps.append(_explanation(group, assignment, better, chain))
        assignment = better
    return tuple(steps)


def _explanation(
    group: Group, before: Assignment, after: Assignment, chain: tuple[Transfer, ...]
) -> Explanation:
    had, has = before.loads(), after.loads()
    along = dict.fromkeys([chain[0].giver, *(transfer.taker for transfer in chain)])
    return Explanation(
        transfers=chain,
        members=tuple((member, had.get(member, 0), has[member]) for member in along),
        moves=movement(group, after) - movement(group, before),
        imbalance=(sum_of_squares(had.values()), sum_of_squares(has.values())),
    )


def _moves_in_words(moves: int) -> str:
    if moves == 0:
        return "no more owned partitions move"
    number = {1: "one", 2: "two", 3: "three"}.get(abs(moves), str(abs(moves)))
    more = "more" if moves > 0 else "fewer"
    plural, verb = ("", "moves") if abs(moves) == 1 else ("s", "move")
    return f"{number} {more} owned partition{plural} {verb}"
