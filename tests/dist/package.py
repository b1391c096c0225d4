"""A script that package_test.py runs under lissom: prints what the package says of this process.

package.py [THREADS]: first let so many threads wait for each other.
"""

import json
import os
import sys
import threading
import time

import lissom

threads = int(sys.argv[1]) if len(sys.argv) > 1 else 0
barrier = threading.Barrier(threads or 1)
before = lissom.stats()


def work():
    for _ in range(200):
        barrier.wait()


workers = [threading.Thread(target=work) for _ in range(threads)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
time.sleep(0.2)  # the numbers may be 0.1 s old
print(
    json.dumps(
        {
            "active": lissom.active(),
            "before": before,
            "after": lissom.stats(),
            "switch": os.environ.get("LISSOM_SWITCH"),
            "arguments": sys.argv[1:],
            "optimized": sys.flags.optimize,
        }
    )
)
