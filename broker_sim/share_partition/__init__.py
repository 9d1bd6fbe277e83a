"""Share partitions (KIP-932): who has which records of a partition, for how long, and what became of them."""
