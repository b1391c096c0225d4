// std::atomic wait/notify (libstdc++'s own futex, after a spin), atomic_flag, promise/future,
// async, packaged_task, jthread with stop_token, and condition_variable_any's interruptible wait.
#include "pthread_test.h"
#include <atomic>
#include <condition_variable>
#include <future>
#include <numeric>
#include <stop_token>
#include <thread>
#include <vector>
using namespace std::chrono_literals;

static int threads;

template <class T> static void pingpong() {
    struct alignas(64) Cell {
        std::atomic<T> v{0};
    };
    std::vector<Cell> cells(size_t(threads) / 2);
    int rounds = t_share(4000, threads);
    std::vector<std::thread> t;
    for (int i = 0; i < threads; i++)
        t.emplace_back([&, i] {
            std::atomic<T> &v = cells[size_t(i) / 2].v;
            T side = T(i & 1);
            for (int r = 0; r < rounds; r++) {
                v.wait(T(1 - side)); // returns when it is this side's turn
                EQ(v.load(), side);
                v.store(T(1 - side));
                v.notify_one();
            }
        });
    for (auto &x : t) x.join();
}

static void broadcast() {
    std::atomic<int> generation = 0, done = 0;
    int rounds = t_share(2000, threads);
    std::vector<std::thread> t;
    for (int i = 0; i < threads; i++)
        t.emplace_back([&] {
            for (int r = 0; r < rounds; r++) {
                generation.wait(r);
                EQ(generation.load(), r + 1);
                if (++done == threads) done.notify_one();
            }
        });
    for (int r = 1; r <= rounds; r++) {
        generation = r;
        generation.notify_all();
        for (int seen; (seen = done) != threads;) done.wait(seen);
        done = 0;
    }
    for (auto &x : t) x.join();
    std::atomic_flag f;
    std::thread x([&] { f.wait(false); });
    f.test_and_set();
    f.notify_all();
    x.join();
}

static void futures() {
    std::vector<std::future<long>> fs;
    for (int i = 0; i < threads; i++)
        fs.push_back(std::async(std::launch::async, [i] {
            std::vector<long> v(1000);
            std::iota(v.begin(), v.end(), i);
            std::this_thread::yield();
            return std::accumulate(v.begin(), v.end(), 0L);
        }));
    for (int i = 0; i < threads; i++) EQ(fs[size_t(i)].get(), 499500L + 1000L * i);
    auto lazy = std::async(std::launch::deferred, [] { return pthread_self(); });
    CHECK(lazy.get() == pthread_self(), "deferred ran elsewhere");
    auto thrower = std::async(std::launch::async, []() -> int { throw std::runtime_error("boo"); });
    try {
        thrower.get();
        FAIL("no exception");
    } catch (const std::runtime_error &e) {
        CHECK(std::string(e.what()) == "boo", "%s", e.what());
    }
    std::promise<int> p;
    std::shared_future<int> sf = p.get_future().share();
    CHECK(sf.wait_for(3ms) == std::future_status::timeout, "ready too early");
    std::vector<std::thread> t;
    std::atomic<int> sum = 0;
    for (int i = 0; i < threads; i++) t.emplace_back([&, sf] { sum += sf.get(); });
    p.set_value(3);
    for (auto &x : t) x.join();
    EQ(sum.load(), 3 * threads);
    std::packaged_task<int(int)> task([](int x) { return x * x; });
    auto r = task.get_future();
    std::thread(std::move(task), 12).join();
    EQ(r.get(), 144);
}

static void stop_tokens() {
    std::mutex m;
    std::condition_variable_any c;
    std::atomic<int> stopped = 0, callbacks = 0;
    {
        std::vector<std::jthread> t;
        for (int i = 0; i < threads; i++)
            t.emplace_back([&](std::stop_token st) {
                std::stop_callback cb(st, [&] { callbacks++; });
                std::unique_lock l(m);
                CHECK(!c.wait(l, st, [] { return false; }), "predicate never holds");
                stopped++;
            });
        std::this_thread::sleep_for(1ms);
    } // the destructors request a stop and join
    EQ(stopped.load(), threads);
    // A thread may wake up and remove its callback before request_stop has reached it.
    CHECK(callbacks <= threads, "%d callbacks of %d threads", callbacks.load(), threads);
    std::stop_source source;
    std::atomic<int> ran = 0;
    std::stop_callback cb(source.get_token(), [&] { ran++; });
    std::thread(&std::stop_source::request_stop, &source).join();
    EQ(ran.load(), 1);
}

int main() {
    t_watchdog();
    threads = t_threads() & ~1;
    PHASE("ping-pong on int");
    pingpong<int>();
    PHASE("ping-pong on char and long"); // libstdc++ waits on a proxy word for these types
    pingpong<char>();
    pingpong<long>();
    PHASE("notify_all");
    broadcast();
    PHASE("futures");
    futures();
    PHASE("stop tokens");
    for (int i = 0; i < 5; i++) stop_tokens();
    return t_ok("lang_cxx_atomic_wait");
}
