"""What is drawn: one module for each area, with its requests, their weights and arguments."""
