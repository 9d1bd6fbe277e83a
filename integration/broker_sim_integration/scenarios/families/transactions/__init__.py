"""Transactions: visibility to readers, fencing, failover of coordinators, offsets, administration."""
