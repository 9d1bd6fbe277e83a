"""The table of logins: frames of valid and invalid clients, played on a simulated and a real broker."""
