"""A study's tables, told as a page: numbers, figures and the worst groups drawn."""

from pathlib import Path

TEMPLATES = Path(__file__).parent / "templates"
