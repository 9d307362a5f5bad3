"""Hand-written small groups with known optima. Each group shows one property of an assignor."""

from dataclasses import dataclass, replace

from kassay.experiments.study.families.family import Family
from kassay.reference.documents.json_codec import parse_group
from kassay.reference.model.group import Group

_Owned = dict[str, list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedGroup:
    """Hand-written group with its optimum and the property of an assignor that it shows."""

    group: Group
    shows: str
    loads: tuple[int, ...]  # of assignments with minimum imbalance, in descending order
    moves: int  # fewest moves to such an assignment


def _named_group(
    name: str,
    topics: dict[str, int],
    *members: tuple[str, list[str], _Owned],
    shows: str,
    loads: tuple[int, ...],
    moves: int,
) -> tuple[str, NamedGroup]:
    documents = [
        {"id": member, "topics": subscription, "owned": owned, "generation": 7 if owned else -1}
        for member, subscription, owned in members
    ]
    group = parse_group({"id": name, "topics": topics, "members": documents})
    return name, NamedGroup(group=group, shows=shows, loads=loads, moves=moves)


NAMED_GROUPS = dict(
    [
        _named_group(
            "A",
            {"t0": 1, "t1": 2},
            ("c0", ["t1"], {}),
            ("c1", ["t0", "t1"], {}),
            ("c2", ["t0"], {}),
            shows="sticky assigns nothing to c2: only a chain of two transfers improves it",
            loads=(1, 1, 1),
            moves=0,
        ),
        _named_group(
            "B",
            {"t0": 1, "t1": 1, "t2": 1},
            ("c0", ["t0"], {}),
            ("c1", ["t0", "t1", "t2"], {"t0": [0]}),
            ("c2", ["t0", "t1", "t2"], {"t1": [0], "t2": [0]}),
            shows="sticky moves nothing and assigns nothing to c0; two moves balance the group",
            loads=(1, 1, 1),
            moves=2,
        ),
        _named_group(
            "C",
            {"t0": 1, "t1": 1, "t2": 1, "t3": 1},
            ("c0", ["t0", "t1"], {}),
            ("c1", ["t0", "t2", "t3"], {"t0": [0], "t2": [0], "t3": [0]}),
            ("c2", ["t0", "t1", "t2", "t3"], {"t1": [0]}),
            shows="sticky makes two moves where one is enough",
            loads=(2, 1, 1),
            moves=1,
        ),
        _named_group(
            "D",
            {"t0": 5, "t13": 3, "t2": 5, "t5": 2, "t6": 6},
            ("c01", ["t13", "t6"], {"t6": [0, 1, 3, 5]}),
            ("c02", ["t0", "t5"], {"t0": [0, 2, 4]}),
            ("c07", ["t2", "t6"], {"t6": [2, 4]}),
            ("c08", ["t0", "t5"], {"t0": [1, 3]}),
            ("cNEW", ["t0", "t6"], {}),
            shows="sticky does not terminate: it moves the same partitions in a cycle",
            loads=(5, 5, 4, 4, 3),
            moves=4,
        ),
        _named_group(
            "E",
            {"T1": 15, "T2": 15},
            ("M1", ["T1"], {"T1": list(range(9))}),
            ("M2", ["T1", "T2"], {"T1": list(range(9, 15)), "T2": list(range(4))}),
            ("M3", ["T2"], {"T2": list(range(4, 15))}),
            shows="uniform leaves loads 11/10/9, as documented; two moves balance the group",
            loads=(10, 10, 10),
            moves=2,
        ),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFamily(Family):
    """Family of the hand-written groups. The seed is the position in `NAMED_GROUPS`."""

    name: str = "named"

    @property
    def size(self) -> int:
        """Return the number of groups in the family."""
        return len(NAMED_GROUPS)

    def parameters(self) -> dict[str, object]:
        """Return the parameters of the family, for the manifest of a study."""
        return {"name": self.name, "groups": list(NAMED_GROUPS)}

    def build(self, seed: int, *, start: str | None = None) -> Group:  # noqa: ARG002
        """Return the group at position ``seed`` of `NAMED_GROUPS`."""
        name, named = list(NAMED_GROUPS.items())[seed]
        return replace(named.group, id=f"{self.name}/{name}")
