"""What the log cleaner leaves of compacted topics, and of the transactions in them."""
