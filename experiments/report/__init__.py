"""Write reports of studies in HTML and Markdown, and comparisons for pull requests."""

from pathlib import Path

TEMPLATES = Path(__file__).parent / "templates"
