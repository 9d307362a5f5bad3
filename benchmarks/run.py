"""Command that runs benchmarks and prints a table and one JSON line per timing.

Each benchmark runs in a process of its own. Comparisons with Java's classes need a JDK and
Maven, comparisons with other Python clients the packages of ``requirements-bench.lock``.
What is not available is reported and left out.
"""

import argparse
import importlib
import sys

from benchmarks.name_arguments import parse_with_names
from benchmarks.timing import Timing, print_json, print_table, run_alone, with_ratios

BENCHMARKS = {
    "sticky-mixed": ("assignor_speed:mixed_sticky", "sticky assignors, mixed subscriptions"),
    "a-million": ("assignor_speed:million_partitions", "assignors on a million partitions"),
    "drivers": ("driver_speed:driver_speed", "drivers of client libraries, and direct calls"),
    "optimum": ("optimum_speed:optimum", "proven optimum compared with Java's sticky assignor"),
    "trajectory": ("trajectory_speed:trajectories", "fewest moves over sequences of rebalances"),
    "shapes": ("network_shapes:shapes", "optimum of special networks, compared with OR-Tools"),
    "typical-weights": ("typical_weights:timings", "weights, compared with plain CP-SAT"),
    "weights": ("weighted_groups:timings", "proven optimum of groups with weights"),
    "commands": ("weighted_commands:timings", "kassay commands on groups with weights"),
    "limits": ("time_limits:timings", "public functions with a time limit of 1 s"),
    "throughput": ("study_throughput:throughput", "study on Spark and on multiprocessing"),
    "simulation": ("simulation_speed:simulated_rebalances", "simulated rebalances, CPU seconds"),
    "start-up": ("start_up:timings", "processor time of whole kassay processes"),
    "history": ("history_throughput:history", "records of __consumer_offsets on Spark"),
}
"""Function (module:name) and description of each benchmark."""


def main() -> None:
    """Run all benchmarks, or the benchmarks named on the command line."""
    listed = "\n".join(f"  {name:16}{description}" for name, (_, description) in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        epilog=f"benchmarks:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = parse_with_names(parser, "benchmark", BENCHMARKS).names
    timings: list[Timing] = []
    for name in names:
        print(f"{name} ...", file=sys.stderr)
        timings.extend(run_alone(_run, name))
    timings = with_ratios(timings)
    print_table(timings, sys.stderr)
    print_json(timings, sys.stdout)


def _run(name: str) -> list[Timing]:
    module, function = BENCHMARKS[name][0].split(":")
    return list(getattr(importlib.import_module(f"benchmarks.{module}"), function)())
