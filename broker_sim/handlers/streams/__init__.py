"""APIs of streams groups (KIP-1071)."""
