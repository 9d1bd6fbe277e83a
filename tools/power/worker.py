"""Runs seeds in the tree that it is started in: a seed per line in, its result as JSON out.

It runs in a copy of the product with a defect, so it imports nothing of the tools.
"""

from __future__ import annotations

import json
import logging
import sys
import time

from broker_sim.cluster.random_run.many import run_seed
from broker_sim.cluster.random_run.schedule import DEFAULT_DURATION_MS


def main() -> None:
    """Answer until the input ends."""
    logging.disable(logging.CRITICAL)
    for line in sys.stdin:
        seed = int(line)
        start = time.process_time()
        result = run_seed(seed, DEFAULT_DURATION_MS, power_loss=False)
        seconds = time.process_time() - start
        print(json.dumps([result.invariant, seconds]), flush=True)


if __name__ == "__main__":
    main()
