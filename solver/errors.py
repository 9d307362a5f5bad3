"""Our own mistakes."""


class SolverError(RuntimeError):
    """The solver contradicts itself, or a library broke its word: a bug."""
