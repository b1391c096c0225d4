// Exceptions thrown through many frames while other threads switch: caught, rethrown, nested and
// carried to another thread. thread_local objects are destroyed in reverse order of construction.
// Cancellation runs destructors.
#include "pthread_test.h"
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

static int threads;
static std::atomic<int> alive = 0;
static thread_local std::vector<int> *log_to;

struct Guard {
    Guard() { alive++; }
    ~Guard() { alive--; }
};
struct Logged {
    int id;
    explicit Logged(int i) : id(i) {}
    ~Logged() {
        if (log_to) log_to->push_back(id);
    }
};
static thread_local Logged first(1);
static thread_local Logged second(2);

static void use_locals() {
    first.id = 1;
    second.id = 2;
    static thread_local Logged third(3);
    third.id = 3;
}

static int __attribute__((noinline)) deep(int n, std::mutex &m, int me) {
    Guard g;
    if (n == 0) {
        std::lock_guard l(m);
        throw std::runtime_error("from " + std::to_string(me));
    }
    if (n % 8 == 0) std::this_thread::yield();
    try {
        return deep(n - 1, m, me) + 1;
    } catch (const std::logic_error &) {
        FAIL("wrong handler");
    } catch (const std::runtime_error &) {
        if (n % 5 == 0) throw;
        std::throw_with_nested(std::runtime_error("level"));
    }
}
static int levels(const std::exception &e) {
    try {
        std::rethrow_if_nested(e);
    } catch (const std::exception &inner) {
        return levels(inner) + 1;
    }
    return 0;
}

static void *cancelled(void *arg) {
    Guard g;
    auto *s = static_cast<std::pair<std::mutex, std::condition_variable> *>(arg);
    try {
        std::unique_lock l(s->first);
        for (;;) s->second.wait(l);
    } catch (const std::exception &) {
        FAIL("cancellation is no std::exception");
    } catch (...) { // glibc's forced unwinding must be rethrown
        alive += 100;
        throw;
    }
    return nullptr;
}

int main() {
    t_watchdog();
    threads = t_threads();
    int rounds = t_share(300, threads);
    PHASE("throwing");
    std::mutex m;
    std::barrier bar(threads);
    std::vector<std::exception_ptr> carried(static_cast<size_t>(threads));
    std::vector<std::vector<int>> logs(static_cast<size_t>(threads));
    std::vector<std::thread> t;
    for (int i = 0; i < threads; i++)
        t.emplace_back([&, i] {
            log_to = &logs[size_t(i)];
            use_locals();
            for (int r = 0; r < rounds; r++) {
                try {
                    deep(30, m, i);
                    FAIL("nothing thrown");
                } catch (const std::runtime_error &e) {
                    EQ(levels(e), 24); // 30 frames, six of which rethrow it unchanged
                    EQ(std::uncaught_exceptions(), 0);
                }
                bar.arrive_and_wait();
            }
            try {
                throw i;
            } catch (...) {
                bar.arrive_and_wait(); // all threads are inside a handler while they switch
                carried[size_t(i)] = std::current_exception();
            }
        });
    for (auto &x : t) x.join();
    EQ(alive.load(), 0);
    for (int i = 0; i < threads; i++) {
        try {
            std::rethrow_exception(carried[size_t(i)]);
        } catch (int v) {
            EQ(v, i);
        }
        CHECK((logs[size_t(i)] == std::vector<int>{3, 2, 1}),
              "thread_local destructors of thread %d ran in another order", i);
    }
    PHASE("cancellation");
    std::pair<std::mutex, std::condition_variable> s;
    std::vector<pthread_t> p;
    for (int i = 0; i < threads; i++) p.push_back(t_spawn(cancelled, &s));
    while (alive < threads) t_sleep_us(100);
    t_sleep_ms(1);
    // Deferred cancellation: threads that have not reached the wait are cancelled there. Their lock
    // must not throw before the try.
    for (auto x : p) OK(pthread_cancel(x));
    for (auto x : p) CHECK(t_join(x) == PTHREAD_CANCELED, "not cancelled");
    EQ(alive.load(), 100 * threads);
    return t_ok("lang_cxx_exceptions");
}
