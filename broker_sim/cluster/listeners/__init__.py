"""Where clients connect to a cluster, how they log in, and the configurations of both."""
