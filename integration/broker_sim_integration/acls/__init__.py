"""What a client may do with each API: a table of requests and rights, played on a simulated and a real broker."""
