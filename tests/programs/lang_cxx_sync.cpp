// All kinds of std::mutex, shared_mutex, condition_variable(_any), once, latch, barrier and
// counting_semaphore: exact results with THREADS threads.
#include "pthread_test.h"
#include <barrier>
#include <condition_variable>
#include <latch>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <thread>
#include <vector>
using namespace std::chrono_literals;

static int threads;
template <class F> static void run(F f) {
    std::vector<std::thread> t;
    for (int i = 0; i < threads; i++) t.emplace_back(f, i);
    for (auto &x : t) x.join();
}

template <class M> static void counter(const char *name) {
    M m;
    long n = 0;
    int rounds = t_share(20000, threads);
    run([&](int) {
        for (int i = 0; i < rounds; i++) {
            std::lock_guard l(m);
            long seen = n;
            if (i % 64 == 0) std::this_thread::yield();
            n = seen + 1;
        }
    });
    CHECK(n == long(threads) * rounds, "%s: %ld", name, n);
}

static void timed() {
    std::timed_mutex m;
    m.lock();
    run([&](int) {
        auto start = std::chrono::steady_clock::now();
        CHECK(!m.try_lock_for(5ms), "locked twice");
        CHECK(std::chrono::steady_clock::now() - start >= 5ms, "early");
        CHECK(!m.try_lock_until(std::chrono::system_clock::now() + 2ms), "locked twice");
    });
    m.unlock();
    CHECK(m.try_lock_for(1000s), "free mutex");
    m.unlock();
}

static void shared() {
    std::shared_mutex m;
    long a = 0, b = 0;
    int rounds = t_share(10000, threads);
    run([&](int me) {
        for (int i = 0; i < rounds; i++) {
            if ((i + me) % 4 == 0) {
                std::unique_lock l(m);
                a++;
                if (i % 16 == 0) std::this_thread::yield();
                b++;
            } else {
                std::shared_lock l(m);
                CHECK(a == b, "half an update seen");
            }
        }
    });
    CHECK(a == b && a > 0, "%ld %ld", a, b);
}

template <class C, class M> static void turns(const char *name) {
    M m;
    C c;
    int turn = 0, passed = 0, n = threads < 16 ? threads : 16, rounds = t_share(1600, n);
    std::vector<std::thread> t;
    for (int me = 0; me < n; me++)
        t.emplace_back([&, me] {
            for (int i = 0; i < rounds; i++) {
                std::unique_lock l(m);
                c.wait(l, [&] { return turn == me; });
                turn = (turn + 1) % n;
                passed++;
                c.notify_all();
            }
        });
    for (auto &x : t) x.join();
    CHECK(passed == n * rounds, "%s: %d", name, passed);
    std::unique_lock l(m);
    auto start = std::chrono::steady_clock::now();
    CHECK(!c.wait_for(l, 5ms, [] { return false; }), "%s", name);
    CHECK(std::chrono::steady_clock::now() - start >= 5ms, "%s early", name);
    auto until = std::chrono::system_clock::now() + 5ms;
    while (c.wait_until(l, until) != std::cv_status::timeout) {}
    CHECK(std::chrono::system_clock::now() >= until, "%s early", name);
}

static void cxx20() {
    for (int r = 0; r < t_share(640, threads); r++) {
        std::latch start(threads), done(threads);
        std::atomic<int> in = 0;
        run([&](int) {
            in++;
            start.arrive_and_wait();
            CHECK(in == threads, "through the latch with %d", in.load());
            done.count_down();
            done.wait();
        });
    }
    int phases = 0, rounds = t_share(3000, threads);
    std::atomic<long> arrivals = 0;
    // the completion runs once per phase, alone
    std::barrier bar(threads, [&]() noexcept { phases++; });
    run([&](int) {
        for (int i = 1; i <= rounds; i++) {
            arrivals++;
            bar.arrive_and_wait();
            CHECK(arrivals >= long(i) * threads && phases >= i, "barrier phase %d", i);
        }
    });
    EQ(phases, rounds);
    std::counting_semaphore<1000> sem(3);
    std::atomic<int> inside = 0;
    run([&](int) {
        for (int i = 0; i < rounds; i++) {
            sem.acquire();
            CHECK(++inside <= 3, "more than three inside");
            if (i % 16 == 0) std::this_thread::yield();
            inside--;
            sem.release();
        }
    });
    std::binary_semaphore none(0);
    auto start = std::chrono::steady_clock::now();
    CHECK(!none.try_acquire_for(5ms), "acquired nothing");
    CHECK(std::chrono::steady_clock::now() - start >= 5ms, "early");
}

static void once() {
    for (int r = 0; r < 20; r++) {
        std::once_flag flag;
        int tries = 0, ran = 0;
        run([&](int) {
            try {
                std::call_once(flag, [&] {
                    if (++tries < 3) throw 1; // the next caller tries again
                    ran++;
                });
                EQ(ran, 1);
            } catch (int) {}
        });
        CHECK(tries >= 2 && ran <= 1 && (threads < 3 || ran == 1), "%d tries, ran %d times", tries,
              ran);
    }
}

int main() {
    t_watchdog();
    threads = t_threads();
    PHASE("mutexes");
    counter<std::mutex>("mutex");
    counter<std::recursive_mutex>("recursive_mutex");
    counter<std::timed_mutex>("timed_mutex");
    counter<std::recursive_timed_mutex>("recursive_timed_mutex");
    counter<std::shared_timed_mutex>("shared_timed_mutex");
    timed();
    PHASE("shared_mutex");
    shared();
    PHASE("condition_variable");
    turns<std::condition_variable, std::mutex>("condition_variable");
    turns<std::condition_variable_any, std::timed_mutex>("condition_variable_any");
    PHASE("latch, barrier, semaphore");
    cxx20();
    PHASE("call_once");
    once();
    return t_ok("lang_cxx_sync");
}
