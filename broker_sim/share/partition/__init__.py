"""Share partitions: acquisition, locks and acknowledgement of a partition's records in a share group."""
