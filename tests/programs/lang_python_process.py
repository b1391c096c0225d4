# Processes of Python beside threads: multiprocessing by fork and by spawn with pools, queues and
# locks (process-shared semaphores), subprocess from several threads, and os.fork in a thread. A
# signal handler must run in the main thread while that waits for a lock.
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time


def square(x):
    return x * x


def add(counter, lock, n):
    for _ in range(n):
        with lock:
            counter.value += 1


def pools():
    for method in "fork", "spawn":
        c = multiprocessing.get_context(method)
        with c.Pool(2) as pool:
            assert pool.map(square, range(50)) == [x * x for x in range(50)], method
        counter, lock = c.Value("i", 0, lock=False), c.Lock()
        ps = [c.Process(target=add, args=(counter, lock, 200)) for _ in range(2)]
        for p in ps:
            p.start()
        for p in ps:
            p.join()
            assert p.exitcode == 0, (method, p.exitcode)
        assert counter.value == 400, (method, counter.value)


def subprocesses():
    results = {}

    def work(i):
        out = subprocess.run(
            ["sh", "-c", f"read x; echo $x-{i}; exit {i}"], input=b"in\n", capture_output=True
        )
        results[i] = (out.returncode, out.stdout)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i in range(6):
        assert results[i] == (i, f"in-{i}\n".encode()), (i, results[i])
    p = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
    p.terminate()
    assert p.wait() == -signal.SIGTERM, p.returncode


def fork_in_thread():
    codes = []

    def work():
        pid = os.fork()
        if pid == 0:
            t = threading.Thread(target=lambda: None)
            t.start()
            t.join()
            os._exit(33)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    for _ in range(3):
        t = threading.Thread(target=work)
        t.start()
        t.join()
    assert codes == [33, 33, 33], codes


def signals():
    class Woken(Exception):
        pass

    def handler(sig, frame):
        assert threading.current_thread() is threading.main_thread()
        raise Woken

    signal.signal(signal.SIGUSR1, handler)
    for wait in (threading.Event().wait, lambda: never.acquire(), lambda: time.sleep(1000)):
        never = threading.Lock()
        never.acquire()

        def pest():  # if it arrives before main waits, it is raised there all the same
            time.sleep(0.005)
            os.kill(os.getpid(), signal.SIGUSR1)

        t = threading.Thread(target=pest)
        try:
            t.start()
            wait()
            raise AssertionError("came back")
        except Woken:
            pass
        t.join()
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)


if __name__ == "__main__":
    for part in signals, subprocesses, fork_in_thread, pools:
        try:
            part()
        except BaseException as e:
            print(f"FAIL {part.__name__}: {e!r}", flush=True)
            os._exit(1)
    print("ok lang_python_process")
