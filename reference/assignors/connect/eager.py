"""Port of ``EagerAssignor``: connectors, then tasks, in circular order over the workers.

Upstream: org.apache.kafka.connect.runtime.distributed.EagerAssignor, connect-runtime 3.5 to 4.3.
"""

from collections.abc import Iterable, Mapping
from itertools import cycle

from kassay.reference.assignors.connect.connectors_and_tasks import ConnectorsAndTasks
from kassay.reference.java.hash_codes import utf16_key


def assign(workers: Iterable[str], connectors: Mapping[str, int]) -> dict[str, ConnectorsAndTasks]:
    """Assign connectors with the given numbers of tasks to the sorted workers."""
    assigned = {worker: ConnectorsAndTasks() for worker in sorted(workers, key=utf16_key)}
    if not assigned:
        return {}
    configured = ConnectorsAndTasks.configured(connectors)
    # One circle for both lists: the first task follows the last connector.
    circle = cycle(assigned.values())
    for connector in configured.connectors:
        next(circle).connectors[connector] = None
    for task in configured.tasks:
        next(circle).tasks[task] = None
    return assigned
