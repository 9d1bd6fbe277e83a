"""The share coordinator of a broker: the state of share partitions, and its log `__share_group_state`."""
