"""`python -m integration.pipeline` is the command `broker-sim-pipeline`."""

from integration.pipeline.cli import main

if __name__ == "__main__":
    main()
