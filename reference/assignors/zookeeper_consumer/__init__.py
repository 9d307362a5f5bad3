"""Ports of the assignors of the ZooKeeper consumer."""
