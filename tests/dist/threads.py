"""Threads that wait for each other in the ways that programs do; prints what has to come out, whoever ran when."""

import queue
import threading

THREADS = 16
ROUNDS = 200

barrier = threading.Barrier(THREADS)
numbers = queue.Queue(maxsize=4)
results = queue.Queue()
lock = threading.Lock()
total = 0


def work(number):
    global total
    for i in range(ROUNDS):
        barrier.wait()
        with lock:
            total += number * i
    for n in iter(numbers.get, None):
        results.put(n * n)


threads = [threading.Thread(target=work, args=(i,)) for i in range(THREADS)]
for t in threads:
    t.start()
for n in range(2000):
    numbers.put(n)
for _ in threads:
    numbers.put(None)
for t in threads:
    t.join()
print(total, results.qsize(), sum(results.get() for _ in range(results.qsize())))
