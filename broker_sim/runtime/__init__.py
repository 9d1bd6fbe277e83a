"""What brokers run on: processes that can be paused and killed, a scheduler, links between nodes."""
