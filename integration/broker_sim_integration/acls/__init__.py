"""The rights that each API needs: a table of requests and ACLs, played on a simulated and a real broker."""
