"""`python -m broker_sim` is `broker-sim`."""

from broker_sim.cli import main

main()
