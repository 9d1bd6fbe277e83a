"""The shared engine of groups with server-side assignment: consumer, share and streams groups."""
