# threading's Lock, RLock, Condition, Event, Semaphore, Barrier, Timer, local, queue; futures;
# asyncio's executor. The GIL is a condition variable with a timeout, and each lock is a semaphore
# or a futex: frequent switches exercise both.
import asyncio
import concurrent.futures
import os
import queue
import sys
import threading
import time

THREADS = int(os.environ.get("THREADS", "4"))
sys.setswitchinterval(0.0005)


def run(fn, n=THREADS):
    errors = []

    def guarded(i):
        try:
            fn(i)
        except BaseException as e:  # an assertion in a thread must fail the program
            errors.append(repr(e))

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors[:3]


def counters():
    rounds = max(1, 4000 // THREADS)
    for lock in (
        threading.Lock(),
        threading.RLock(),
        threading.Condition(),
        threading.Semaphore(1),
        threading.BoundedSemaphore(1),
    ):
        box = [0]

        def work(i):
            for k in range(rounds):
                with lock:
                    seen = box[0]
                    if k % 50 == 0:
                        time.sleep(0)
                    box[0] = seen + 1

        run(work)
        assert box[0] == rounds * THREADS, (lock, box)
    lock = threading.Lock()
    with lock:
        start = time.monotonic()
        assert not lock.acquire(timeout=0.01)
        assert time.monotonic() - start >= 0.0099
        assert not lock.acquire(blocking=False)


def turns():
    n = min(THREADS, 8)
    c, turn, rounds = threading.Condition(), [0], max(1, 400 // n)

    def work(i):
        for _ in range(rounds):
            with c:
                c.wait_for(lambda: turn[0] % n == i)
                turn[0] += 1
                c.notify_all()

    run(work, n)
    assert turn[0] == n * rounds
    with c:
        assert not c.wait(timeout=0.005)


def events_and_barriers():
    e, b, serial, arrived = threading.Event(), threading.Barrier(THREADS), [], []

    def work(i):
        assert e.wait(100)
        for r in range(1, 6):
            arrived.append(i)
            if b.wait(100) == 0:
                serial.append(r)
            assert len(arrived) >= r * THREADS, (r, len(arrived))

    threading.Timer(0.005, e.set).start()
    run(work)
    assert sorted(serial) == [1, 2, 3, 4, 5], serial
    assert not threading.Event().wait(0.005)
    local = threading.local()

    def locals_(i):
        local.x = i
        for _ in range(20):
            time.sleep(0)
            assert local.x == i

    run(locals_)


def queues():
    per = max(1, 1200 // THREADS)
    for q in queue.Queue(3), queue.SimpleQueue(), queue.LifoQueue(5), queue.PriorityQueue(5):
        got, producers = [], THREADS // 2 or 1
        consumers = THREADS - producers or 1

        def work(i):
            if i < producers:
                for k in range(per):
                    q.put((i, k))
            else:
                while (item := q.get())[0] >= 0:
                    got.append(item)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(producers + consumers)]
        for t in threads:
            t.start()
        for t in threads[:producers]:
            t.join()
        # The end mark must not overtake items in a priority queue: wait until all were taken.
        deadline = time.monotonic() + 60
        while len(got) < producers * per and time.monotonic() < deadline:
            time.sleep(0.001)
        for _ in range(consumers):
            q.put((-1, 0))
        for t in threads[producers:]:
            t.join()
        assert sorted(got) == [(i, k) for i in range(producers) for k in range(per)], (q, len(got))
    try:
        queue.Queue().get(timeout=0.005)
        raise AssertionError("got something")
    except queue.Empty:
        pass


def futures():
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(lambda x: x * x, range(300))) == [x * x for x in range(300)]
        fs = [pool.submit(divmod, i, i % 2) for i in range(20)]
        failed = sum(
            isinstance(f.exception(), ZeroDivisionError)
            for f in concurrent.futures.as_completed(fs)
        )
        assert failed == 10, failed

    async def main():
        loop = asyncio.get_running_loop()
        return sum(
            await asyncio.gather(*(loop.run_in_executor(None, pow, i, 2) for i in range(100)))
        )

    assert asyncio.run(main()) == sum(i * i for i in range(100))


for part in counters, turns, events_and_barriers, queues, futures:
    try:
        part()
    except BaseException as e:
        print(f"FAIL {part.__name__}: {e!r}", flush=True)
        os._exit(1)
print("ok lang_python_threads")
