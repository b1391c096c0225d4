"""What `lissom stat` says about this process, for tests that run in workers."""

import json
import os
import subprocess
import threading


def managed():
    """Slots of this process and its counter of threads; None if lissom does not manage it."""
    # A process of one thread is not managed yet.
    second = threading.Thread(target=lambda: None)
    second.start()
    second.join()
    command = ["lissom", "stat", "--json", "--interval=100ms", str(os.getpid())]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    (program,) = json.loads(done.stdout)["programs"]
    return program["slots"] and (program["slots"], program["counters"]["threads_peak"])


def train(threads):
    """Train a small model with OpenMP threads; return its error and managed()."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    import numpy
    import threadpoolctl
    from sklearn.ensemble import HistGradientBoostingRegressor

    x = numpy.random.default_rng(1).normal(size=(2000, 10))
    y = x[:, 0] * x[:, 1] + x[:, 2]
    with threadpoolctl.threadpool_limits(threads, user_api="openmp"):
        model = HistGradientBoostingRegressor(max_iter=20, random_state=1).fit(x, y)
        error = float(numpy.mean((model.predict(x) - y) ** 2))
    return error, managed()


def check(results, threads):
    """Fail unless each result of train(threads) is of a managed process, with the right error."""
    # The order of summation may change the last digits.
    for error, state in results:
        assert 0.05 < error < 0.5, error
        assert state, "lissom does not manage this process"
        assert state[1] >= threads, state
    assert max(e for e, _ in results) - min(e for e, _ in results) < 1e-3, results
