"""HTML and Markdown reports of studies, and comparisons for pull requests."""

from pathlib import Path

TEMPLATES = Path(__file__).parent / "templates"
