"""The machines of a cluster and what they keep: brokers, the controller, configurations, data."""
