"""Import groups from saved output of tools or from a running cluster.

Parsers do not guess. For input that is truncated, damaged, contradictory or of an unknown form,
they raise `InputError` with the place of the error.
"""
