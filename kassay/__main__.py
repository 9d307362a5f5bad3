"""``python -m kassay`` runs the command line."""

from kassay.experiments.cli import main

main()
