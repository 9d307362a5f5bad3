"""Deterministic simulation of Kafka's group coordinator in virtual time.

`ClassicCoordinator` implements the classic protocol, `ConsumerCoordinator` KIP-848. This
package imports no assignor: classic leaders send assignments, `ConsumerCoordinator` takes an
assignor as argument.
"""
