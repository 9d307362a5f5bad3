"""Names of members with ordinals, such as the names of pods."""

import re
from collections import Counter
from collections.abc import Iterable

_ORDINAL = re.compile(r"(.*?)(\d+)", re.DOTALL)


def ordinal(name: str) -> tuple[str, int] | None:
    """Split a name into its prefix and its ordinal, or return None if it has no ordinal."""
    match = _ORDINAL.fullmatch(name)
    return None if match is None else (match[1], int(match[2]))


def by_ordinal(names: Iterable[str]) -> list[str] | None:
    """Sort names by prefix and ordinal, or return None if a name has no ordinal of its own."""
    found = {name: ordinal(name) for name in names}
    keys = list(found.values())
    if None in keys or len(set(keys)) < len(keys):
        return None
    return sorted(found, key=lambda name: found[name] or ("", 0))


def next_names(names: Iterable[str], count: int) -> list[str]:
    """Return names of added members: the next ordinals, or new-1, new-2, ..."""
    taken = set(names)
    found = [ordinal(name) for name in names]
    prefixes = Counter(one[0] for one in found if one is not None)
    prefix, start = "new-", 1
    if prefixes:
        prefix = prefixes.most_common(1)[0][0]
        start = 1 + max(one[1] for one in found if one is not None and one[0] == prefix)
    numbered = (f"{prefix}{number}" for number in range(start, start + count + len(taken)))
    return [name for name in numbered if name not in taken][:count]
