"""Import groups from saved output of tools or from a running cluster.

Parsers do not guess. They raise `InputError` with the place of the error for input that is cut,
damaged, contradictory or of an unknown form.
"""
