"""What happens to the cluster of a random run, whoever uses it: actions as data, drawn from a seed, carried out."""
