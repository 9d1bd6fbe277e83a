"""Processes of brokers that can be paused and killed, their scheduler, and the links between nodes."""
