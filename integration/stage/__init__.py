"""The stage on which one scenario plays: brokers by their parts, topics, faults."""
