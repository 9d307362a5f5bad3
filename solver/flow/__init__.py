"""The exact method for equal weights: min-cost flow over topics, owners and members.

Partitions of one topic with one owner are interchangeable, so the network has an arc for
each subscription and not for each partition: its size grows with topics x members.
"""

from kassay.solver.flow.method import solve_flow

__all__ = ["solve_flow"]
