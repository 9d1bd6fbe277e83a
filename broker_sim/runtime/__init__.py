"""What code runs on: processes that can be paused and killed, the scheduler, links between nodes."""
