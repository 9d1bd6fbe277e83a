"""The persister: reads and writes the state of share partitions at their share coordinators."""
