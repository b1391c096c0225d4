"""Listens at a free port of 127.0.0.1, prints its number, and waits to be killed."""

import signal
import socket

with socket.socket() as listener:
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    print(listener.getsockname()[1], flush=True)
    signal.pause()
