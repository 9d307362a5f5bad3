"""Load groups from captures, which are saved outputs of Kafka or monitoring tools."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kassay.experiments.sources.capture_files import EmptyGroups, import_groups
from kassay.experiments.sources.import_options import ImportOptions
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group


def load_captures(
    source: Path | str,
    *,
    subscriptions: Path | str | None = None,
    weights: str | Mapping[str, Sequence[int]] | None = None,
    missing_lag: int | None = None,
) -> tuple[Group, ...]:
    """Load all groups from a capture, a group document or a directory with captures.

    Parameters
    ----------
    subscriptions
        Subscriptions that the source does not show: ``assigned`` (the default), ``equal``, or a
        JSON file as in ``kassay import --subscriptions``.
    weights
        Weight of each partition. ``none``: 1, also if the source has weights; ``lag``: its lag;
        or a table of topic to one integer per partition. Default: weights of the group document,
        otherwise 1.
    missing_lag
        Lag of partitions without a lag.

    Raises
    ------
    InputError
        If the source does not exist, a group is not valid, or there is no group with members.
    """
    path = Path(source).expanduser()
    if not path.exists():
        raise InputError(f"{path}: no such file or directory")
    name, table = (weights, None) if isinstance(weights, str) else (None, weights)
    options = ImportOptions(weight_table=table, missing_lag=missing_lag).with_named_weights(name)
    options = options.with_subscriptions(subscriptions)
    groups = []
    for imported in import_groups([path], options, empty=EmptyGroups.REJECT):
        if imported.error is not None:
            raise InputError(imported.error)
        if imported.group is not None:
            groups.append(imported.group)
    if not groups:
        raise InputError(f"{path}: the input contains no group with members")
    return tuple(groups)
