"""The cluster that a scenario runs against, real or simulated: brokers, topics, clients, faults."""
