"""What families have in common that have a group for every seed."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlimitedFamily:
    """A family whose seeds never run out.

    Parameters
    ----------
    name
        Name of the family.
    """

    name: str

    @property
    def size(self) -> None:
        """How many groups there are: no end of them."""
        return

    def parameters(self) -> dict[str, object]:
        """Return the parameters, as a manifest records them."""
        return asdict(self)
