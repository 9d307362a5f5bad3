"""Entry point of ``python -m benchmarks``, which `make bench` runs."""

from benchmarks.run import main

if __name__ == "__main__":
    main()
