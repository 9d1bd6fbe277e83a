"""Groups of the consumer protocol (KIP-848): the coordinator assigns, and members reconcile."""
