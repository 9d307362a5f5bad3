"""Entry point of ``python -m kassay``, which runs the command line."""

from kassay.experiments.cli import main

main()
