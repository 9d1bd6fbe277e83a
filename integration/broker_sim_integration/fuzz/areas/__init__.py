"""The areas of drawn requests: a module for each, with requests, weights and arguments."""
