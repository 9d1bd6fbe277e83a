"""What a login gets: frames of good and bad clients, played on a simulated and a real broker."""
