"""What can happen to a cluster, in real time as in virtual time."""
