"""``python -m benchmarks``, which is what `make bench` runs."""

from benchmarks.run import main

if __name__ == "__main__":
    main()
