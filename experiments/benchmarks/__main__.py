"""``python -m experiments.benchmarks``, which is what `make bench` runs."""

from experiments.benchmarks.run import main

if __name__ == "__main__":
    main()
