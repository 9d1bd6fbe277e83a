"""Share partitions: which member has which records of a partition, for how long, and how they were acknowledged."""
