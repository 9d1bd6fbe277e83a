"""`broker-sim run --virtual`: a program's output, exit code and digest, which the seed repeats."""

import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner

from broker_sim.cli.run import command

PROGRAM = """
import os, sys, time
print(len(os.environ["KAFKA_BOOTSTRAP_SERVERS"].split(",")), "servers, chance", os.urandom(4).hex())
time.sleep(3600)
sys.exit(3)
"""


def run_virtual(seed):
    words = ["--virtual", "--brokers", "2", "--seed", str(seed), "--", "python", "-S", "-c", PROGRAM]
    command = [sys.executable, "-m", "broker_sim", "run", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.threads
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: apt-get install gcc libc6-dev")
def test_output_exit_code_and_digest_repeat_from_the_seed():
    first, again, other = map(run_virtual, (7, 7, 8))
    assert first.returncode == 3, first.stderr
    assert first.stdout.startswith("2 servers, chance ")
    assert first.stderr.startswith("seed 7: exit code 3 after 3600.000 s of virtual time, trace ")
    assert (again.stdout, again.stderr) == (first.stdout, first.stderr)
    assert other.stdout != first.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--virtual"], "--virtual -- COMMAND"),
        (["--", sys.executable], "--virtual -- COMMAND"),
        (["--virtual", "--"], "Missing argument 'COMMAND...'"),
        (["--virtual", "--", "no-such-command"], "command not found"),
        (["--virtual", "--port", "9092", "--", sys.executable], "--port has no effect in virtual time"),
    ],
)
def test_wrong_usage_says_what_to_write(arguments, message):
    refused = CliRunner().invoke(command, arguments)
    assert refused.exit_code == 2
    assert message in refused.output
