"""Runs `lissom top` in a terminal of 80 x 24 that pyte emulates, presses keys, and says what the screen shows: `top.py LISSOM PID NAME [snapshot]`."""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

import pyte

COLUMNS, LINES = 80, 24


class Terminal:
    def __init__(self, command):
        self.screen = pyte.Screen(COLUMNS, LINES)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm-256color"
            # Before the program starts: it asks for the size only then, and when that changes.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
            os.execv(command[0], command)

    def read(self, seconds):
        """What comes within that time. False: it has ended."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.fd], [], [], left)[0]:
                continue
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                return False
            if not data:
                return False
            self.raw += data
            self.stream.feed(data)
        return True

    def wait_for(self, condition, what):
        """Until it holds for the lines of the screen; the case's own limit ends what never comes."""
        while not condition(self.screen.display):
            if not self.read(0.1):
                sys.exit(f"it ended before: {what}\n" + "\n".join(self.screen.display))

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def exit_code(self):
        while self.read(0.1):
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def main():
    lissom, pid, name = sys.argv[1:4]

    def has(text):
        return lambda lines: any(text in line for line in lines)

    def row(lines):
        return [i for i, line in enumerate(lines[2:]) if line.lstrip().startswith(pid + " ")]

    t = Terminal([lissom, "top", "--interval", "300ms"])
    t.wait_for(lambda lines: row(lines) and has("active")(lines), "the program")
    t.press("/" + name[:6] + "\r")
    t.wait_for(lambda lines: row(lines) == [0] and has("filter: " + name[:6])(lines), "the filter")
    t.wait_for(has(f"{name} [{pid}]"), "its details")
    t.wait_for(has("the_barrier"), "its lock")
    print("details")
    if len(sys.argv) > 4:
        print("\n".join(t.screen.display))
    t.press("d")
    t.wait_for(lambda lines: not has("the_barrier")(lines), "no details")
    t.press("h")
    t.wait_for(has("sort by another column"), "help")
    t.press("h")
    t.wait_for(lambda lines: not has("sort by another column")(lines), "no help")
    print("keys")
    os.kill(int(pid), signal.SIGSTOP)
    t.wait_for(has("stopped"), "that it is stopped")
    os.kill(int(pid), signal.SIGCONT)
    os.kill(int(pid), signal.SIGKILL)
    t.wait_for(lambda lines: has("ended")(lines) or has("dead")(lines), "that it has ended")
    print("ended")
    t.press("q")
    print("exit code", t.exit_code())
    # The previous screen and the cursor must be restored.
    print(
        "restored",
        t.raw.rfind(b"\x1b[?1049l") > t.raw.rfind(b"\x1b[?1049h"),
        t.raw.rfind(b"\x1b[?25h") > t.raw.rfind(b"\x1b[?25l"),
    )
    t = Terminal([lissom, "top"])
    t.wait_for(has("lissom:"), "the second one")
    os.kill(t.pid, signal.SIGTERM)
    print("asked to end", t.exit_code(), b"\x1b[?1049l" in t.raw)
    t = Terminal([lissom, "top"])
    t.wait_for(has("lissom:"), "the third one")
    os.close(t.fd)
    print("its terminal went away", os.waitstatus_to_exitcode(os.waitpid(t.pid, 0)[1]))


main()
