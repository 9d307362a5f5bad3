"""Sources of partition weights: lag, append rate, size on disk or a file."""

from enum import StrEnum

from kassay.reference.model.errors import InputError


class WeightSource(StrEnum):
    """Source of partition weights: a measured quantity or a file."""

    LAG = "lag"  # messages between the committed offset and the end offset
    RATE = "rate"  # messages appended between two samples of the end offsets
    SIZE = "size"  # bytes on disk
    FILE = "file"  # numbers of a file or table; their quantity is not known

    @classmethod
    def parse(cls, name: str) -> "WeightSource":
        """Convert a name to a weight source. Raise InputError for an unknown name.

        Examples
        --------
        >>> WeightSource.parse("lag") is WeightSource.LAG
        True
        """
        try:
            return cls(name)
        except ValueError:
            known = ", ".join(cls)
            raise InputError(
                f"the source of weights must be one of {known}, got {name!r}"
            ) from None
