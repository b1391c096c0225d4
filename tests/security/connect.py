"""Connects to a manager's socket as each of some users, and says what comes: `connect.py SOCKET USER...`."""

import os
import socket
import sys

for user in map(int, sys.argv[2:]):
    if os.fork() == 0:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.connect(sys.argv[1])
        text, files, _, _ = socket.recv_fds(s, 100, 4)
        print(
            f"user {user}:",
            "a page" if len(files) == 1 and len(text) == 8 else "closed",
            flush=True,
        )
        os._exit(0)
    os.wait()
