"""Listeners of a cluster, logins, and the configurations of clients for both."""
