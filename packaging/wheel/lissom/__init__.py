"""Run Python programs under lissom, and read what lissom did for this process.

python -m lissom train.py       run a script under `lissom run`

import lissom
lissom.active()                 does lissom manage the threads of this process?
lissom.stats()                  its counters so far, or None
"""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
import threading
import time
from typing import Any

__all__ = ["active", "program", "stats"]

# How long to wait for the runtime after a second thread has begun, in seconds.
_START_TIMEOUT = 1.0
# States of `lissom stat` in which the runtime manages the threads of a process.
_ACTIVE_STATES = ("active", "idle", "stuck")
# The process in which the runtime was loaded, but published nothing in that time.
_native_pid = 0


def active() -> bool:
    """Return whether lissom manages the threads of this process.

    lissom pauses while a process has one thread. If so, active() lets another thread compute for
    a moment, so that the answer does not depend on the time of the call.

    Takes some milliseconds. Raises FileNotFoundError if the program `lissom` is missing, and
    RuntimeError if it fails.
    """
    return _stat()["state"] in _ACTIVE_STATES


def stats() -> dict[str, int] | None:
    """Return the counters of lissom for this process since its start, by name.

    The names are those of `lissom run --stats=json`, such as blocks: waits that blocked in user
    space. The numbers are at most 0.1 seconds old. Returns None if lissom does not manage this
    process.

    Like active(), it may let another thread compute for a moment, takes some milliseconds, and
    raises FileNotFoundError or RuntimeError.
    """
    return _stat().get("counters")


def program() -> str:
    """Return the path of the program `lissom` that was installed with this package.

    Raises FileNotFoundError if it is missing.
    """
    # pip puts it into `bin` of the environment, of the user (--user) or of a folder (--target).
    folders = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", "posix_user"),
        os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin"),
    ]
    for folder in folders:
        path = os.path.join(folder, "lissom")
        if os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(
        f"there is no program lissom in {', '.join(folders)}; "
        "run python -m pip install --force-reinstall lissom"
    )


def _stat() -> dict[str, Any]:
    """Return the entry of this process in `lissom stat --once --json`."""
    global _native_pid
    entry = _stat_now()
    if entry["state"] != "silent" or _native_pid == os.getpid():
        return entry
    # The runtime publishes its numbers once two threads could run at the same time.
    deadline = time.monotonic() + _START_TIMEOUT
    has_answer = False

    def compute() -> None:
        while not has_answer and time.monotonic() < deadline:
            pass

    thread = threading.Thread(target=compute, daemon=True)
    thread.start()
    try:
        while entry["state"] == "silent" and time.monotonic() < deadline:
            entry = _stat_now()
    finally:
        has_answer = True
        thread.join()
    if entry["state"] == "silent":
        _native_pid = os.getpid()
    return entry


def _stat_now() -> dict[str, Any]:
    command = [program(), "stat", "--once", "--json", str(os.getpid())]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(
            f"{' '.join(command)} failed: {done.stderr.strip() or done.returncode}; "
            "`lissom doctor` checks this machine"
        )
    entry: dict[str, Any] = json.loads(done.stdout)["programs"][0]
    return entry
