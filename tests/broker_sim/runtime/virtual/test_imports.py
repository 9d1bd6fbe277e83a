"""What runs in virtual time imports nothing that a browser lacks, and nothing slow that it does not need."""

import subprocess
import sys

TIMEOUT_S = 120
ABSENT = {
    "C extensions": ("crc32c", "aiohttp", "cramjam", "uvloop", "cryptography"),
    "absent in WebAssembly": ("_multiprocessing", "fcntl", "resource", "pwd", "grp", "readline", "curses", "termios"),
    "slow, and needed elsewhere": ("multiprocessing", "urllib.request", "http", "email", "difflib", "ssl"),
    "command lines": ("click", "rich"),
}
PROGRAM = """
import sys

ABSENT = {absent!r}
sys.modules.update(dict.fromkeys(ABSENT))  # so that an import of them fails

from broker_sim import SimulatedCluster, VirtualCluster
from broker_sim.chaos import run_chaos
from broker_sim.chaos.random_run.random_runs import RandomRuns
from broker_sim.chaos.search import NamedTest, run_seeds

with VirtualCluster(3, topics=["orders:1:3"]) as kafka:
    kafka.advance(1_000)
runs = RandomRuns(2_000, True)
(outcome,) = run_seeds(runs, [1], jobs=1)
assert outcome.invariant is None, outcome
assert not [name for name in ABSENT if sys.modules[name] is not None]
print(outcome.summary.digest)
"""


def test_clusters_and_chaos_need_neither_c_extensions_nor_slow_modules():
    absent = [name for names in ABSENT.values() for name in names]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(absent=absent)],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout
