"""Order of Java's ``PriorityQueue``, which is not stable for equal elements.

Upstream: java.util.PriorityQueue, OpenJDK 8 to 25.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


def poll_order(elements: Iterable[T], key: Callable[[T], Any]) -> list[T]:
    """Return elements in the order of ``poll``, after ``add`` in the given order.

    Examples
    --------
    >>> poll_order(["1a", "1b", "1c", "0"], key=lambda text: text[0])
    ['0', '1b', '1c', '1a']
    """
    heap: list[tuple[Any, T]] = []
    for element in elements:
        heap.append((key(element), element))
        _sift_up(heap)
    order = []
    while heap:
        order.append(heap[0][1])
        last = heap.pop()
        if heap:
            heap[0] = last
            _sift_down(heap)
    return order


def _sift_up(heap: list[tuple[Any, T]]) -> None:
    index = len(heap) - 1
    while index > 0:
        parent = (index - 1) // 2
        if heap[index][0] >= heap[parent][0]:
            return
        heap[index], heap[parent] = heap[parent], heap[index]
        index = parent


def _sift_down(heap: list[tuple[Any, T]]) -> None:
    index = 0
    while 2 * index + 1 < len(heap):
        child = 2 * index + 1
        if child + 1 < len(heap) and heap[child][0] > heap[child + 1][0]:
            child += 1
        if heap[index][0] <= heap[child][0]:
            return
        heap[index], heap[child] = heap[child], heap[index]
        index = child
