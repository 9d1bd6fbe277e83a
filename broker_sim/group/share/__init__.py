"""Share groups (KIP-932): members, their assignments, and the share partitions that have state."""
