# SPDX-License-Identifier: MIT
"""Computes for about a second, in one thread: `sums` in Python itself, `algebra` and `fft` in NumPy.

python3 compute.py sums
"""

import sys
import time


def sums():
    total = 0
    for i in range(20000):
        total += i * i % 7
    words = {str(i): i for i in range(2000)}
    return total + sum(words[key] for key in sorted(words))


def algebra():
    a = numpy.random.default_rng(1).standard_normal((200, 200))
    u, s, v = numpy.linalg.svd(a @ a.T + numpy.eye(200))
    return float(numpy.abs(numpy.linalg.solve(a, u @ v)).max() + s[0])


def fft():
    a = numpy.random.default_rng(2).standard_normal(1 << 17)
    return float(numpy.abs(numpy.fft.ifft(numpy.fft.fft(a)) - a).max())


what = {"sums": sums, "algebra": algebra, "fft": fft}[sys.argv[1]]
if what is not sums:
    import numpy

end = time.monotonic() + 1
while time.monotonic() < end:
    what()
