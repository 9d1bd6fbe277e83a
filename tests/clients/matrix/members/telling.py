"""What members of all kinds tell and are told: lines of JSON on stdout, a line on stdin to leave."""

import json
import sys
import threading


def tell(**event):
    print(json.dumps(event), flush=True)


def when_told_to_leave():
    """Return an event that is set when a line comes."""
    left = threading.Event()

    def listen():
        sys.stdin.readline()
        left.set()

    threading.Thread(target=listen, daemon=True).start()
    return left
