"""What monitoring tools and REST proxies say of groups, as the tables of a capture."""

from kassay.experiments.sources.tool_documents.document_rows import DocumentRows
from kassay.experiments.sources.tool_documents.format_detection import read_tool

__all__ = ["DocumentRows", "read_tool"]
