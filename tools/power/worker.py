"""Runs seeds in its working directory: each input line has a seed and the invariants to leave out; output is JSON.

The directory is a copy of the product with a defect, so this script imports nothing of the tools.
"""

from __future__ import annotations

import json
import logging
import sys
import time

from broker_sim.chaos.random_run.random_runs import RandomRuns
from broker_sim.cluster.virtual.invariants import left_out

POWER_LOSS = "--power-loss"


def main() -> None:
    """Run seeds until the input ends."""
    logging.disable(logging.CRITICAL)
    runs = RandomRuns(power_loss=POWER_LOSS in sys.argv)
    for line in sys.stdin:
        seed, *without = line.split()
        start = time.process_time()
        with left_out(*without):
            outcome = runs.run(runs.draw(int(seed)))
        seconds = time.process_time() - start
        print(json.dumps([outcome.invariant or "", seconds]), flush=True)


if __name__ == "__main__":
    main()
