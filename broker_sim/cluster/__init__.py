"""A whole cluster: `AsyncCluster` puts it together, `Cluster` and `virtual/` are its other faces.

nodes/     the machines of the brokers, the controller, and the data that they keep
listeners/ where clients connect, and how they log in
status/    what a cluster tells of itself
verbs/     what can be done to it: the one list for every face
virtual/   clusters in virtual time, with clients and invariants
"""
