"""`python -m broker_sim_integration.pipeline` is the command `broker-sim-pipeline`."""

from broker_sim_integration.pipeline.cli import main

if __name__ == "__main__":
    main()
