"""``python -m experiments`` is ``kassay``."""

from experiments.cli import main

main()
