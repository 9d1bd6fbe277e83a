"""A whole cluster: `AsyncCluster` composes it; `Cluster` and `VirtualCluster` wrap it.

nodes/     the machines of the brokers, the controller, and their data
listeners/ the listeners for clients, and logins
status/    snapshots and metrics
verbs/     operations on a cluster: the one list for every face
virtual/   clusters in virtual time, with clients and invariants
"""
