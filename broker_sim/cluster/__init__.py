"""A whole cluster: `AsyncCluster` puts it together, `Cluster` and `virtual/` are its other faces.

nodes/     the machines of the brokers, the controller, and their data
listeners/ the listeners for clients, and logins
status/    snapshots and metrics
verbs/     operations on a cluster: the one list for every face
virtual/   clusters in virtual time, with clients and invariants
"""
