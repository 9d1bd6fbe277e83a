"""Whether a thread waits for a lock, as its line says and the operating system.

In virtual time one thread runs at a time, so nobody gives back a lock that the running thread waits for.
"""

from __future__ import annotations

import linecache
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import threading

TAKES_LOCK: Final = re.compile(r"\bwith\b|\.acquire\(")
SWITCHES: Final = re.compile(r"^voluntary_ctxt_switches:\s*(\d+)", re.MULTILINE)


def lock_wait(thread: threading.Thread) -> tuple[object, ...] | None:
    """Return something that is equal again as long as the thread stays in one wait for a lock.

    None if it does not wait for a lock, and where the system does not tell, as outside of Linux.
    """
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None:
        return None
    if not TAKES_LOCK.search(linecache.getline(frame.f_code.co_filename, frame.f_lineno)):
        return None
    of_thread = Path(f"/proc/self/task/{thread.native_id}")
    try:
        waits_in, status = (of_thread / "wchan").read_text(), (of_thread / "status").read_text()
    except OSError:
        return None
    switches = SWITCHES.search(status)
    if "futex" not in waits_in or switches is None:
        return None
    return (frame.f_code, frame.f_lasti, switches[1])
