"""Start a real Kafka of three nodes by hand: `python -m broker_sim_integration.reference --reference jvm`.

Prints one JSON line with its address when it is ready, and runs until ctrl-C or SIGTERM.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading

from broker_sim_integration.reference.errors import ReferenceClusterError
from broker_sim_integration.reference.progress import to_stderr
from broker_sim_integration.reference.selection import select_reference


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m broker_sim_integration.reference", description=__doc__)
    parser.add_argument("--reference", default="auto", help="auto, containers or jvm")
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="Broker configuration; may be repeated.",
    )
    arguments = parser.parse_args()
    configs = dict(pair.split("=", 1) for pair in arguments.config)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        selection = select_reference(arguments.reference, progress=to_stderr)
        with selection.cluster(configs, progress=to_stderr) as cluster:
            ready = {"bootstrap_servers": cluster.bootstrap_servers, **cluster.describe()}
            sys.stdout.write(json.dumps(ready) + "\n")
            sys.stdout.flush()
            threading.Event().wait()
    except KeyboardInterrupt:
        to_stderr("stopped")
    except (ReferenceClusterError, ValueError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
