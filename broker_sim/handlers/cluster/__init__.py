"""APIs about the cluster: versions, brokers, leaders and reassignments."""
