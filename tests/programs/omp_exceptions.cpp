// build: -fopenmp
// compiler@clang: clang++
// build@clang: -fopenmp
// Exceptions in iterations of dynamically scheduled loops: thrown some calls deep and caught in the
// iteration, kept until after the region, rethrown, and thrown through regions and tasks inside of
// an iteration. Objects on the way must be destroyed.
#include "omp_work.h"
#include "pthread_test.h"
#include <exception>
#include <memory>
#include <omp.h>
#include <stdexcept>
#include <string>
#include <vector>

static int threads;
static int alive; // number of objects
enum { N = 1000 };

struct Guard {
    Guard() { __atomic_fetch_add(&alive, 1, __ATOMIC_RELAXED); }
    ~Guard() { __atomic_fetch_sub(&alive, 1, __ATOMIC_RELAXED); }
};

struct Odd : std::runtime_error {
    int value;
    explicit Odd(int i) : std::runtime_error("odd " + std::to_string(i)), value(i) {}
};

__attribute__((noinline)) static long deep(int i, int depth) {
    Guard guard;
    std::vector<int> memory(static_cast<size_t>(depth + 1), i);
    if (depth) return deep(i, depth - 1) + memory[0];
    work(i);
    if (i % 2) throw Odd(i);
    if (i % 5 == 0) throw std::string("fifth");
    return i;
}

static long caught(int i) {
    Guard guard;
    try {
        return deep(i, i % 7);
    } catch (const Odd &o) {
        return static_cast<long>(std::string(o.what()).size()) * 1000 + o.value;
    } catch (const std::string &s) {
        return -static_cast<long>(s.size());
    }
}

#define PRAGMA(...) _Pragma(#__VA_ARGS__)
#define SUM(...) \
    do { \
        long sum = 0; \
        PRAGMA(omp parallel for reduction(+ : sum) __VA_ARGS__) \
        for (int i = 0; i < N; i++) sum += caught(i); \
        printf(#__VA_ARGS__ ": %ld\n", sum); \
        EQ(alive, 0); \
    } while (0)

// Keep exceptions, and rethrow that of the lowest iteration after the region.
static void kept() {
    std::vector<std::exception_ptr> kept(N);
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < N; i++) {
        try {
            deep(i, 3);
        } catch (...) {
            kept[static_cast<size_t>(i)] = std::current_exception();
        }
    }
    long sum = 0;
    for (auto &e : kept) {
        if (!e) continue;
        try {
            std::rethrow_exception(e);
        } catch (const Odd &o) {
            sum += o.value;
        } catch (const std::string &) {
            sum += 1000000;
        }
    }
    printf("kept: %ld\n", sum);
}

static void inside_of_others() {
    long sum = 0;
    omp_set_max_active_levels(2);
#pragma omp parallel for schedule(dynamic) num_threads(4) reduction(+ : sum)
    for (int i = 0; i < 30; i++) {
        try {
            Guard guard;
            long inner = 0;
#pragma omp parallel for schedule(guided) num_threads(3) reduction(+ : inner)
            for (int j = 0; j < 30; j++) inner += caught(i * 30 + j);
            sum += inner;
            throw std::make_unique<long>(inner);
        } catch (const std::unique_ptr<long> &p) {
            sum += *p % 1000;
        }
    }
    omp_set_max_active_levels(1);
    printf("in nested regions: %ld\n", sum);
    long tasks = 0;
#pragma omp parallel for schedule(nonmonotonic : dynamic)
    for (int i = 0; i < 600; i++) {
#pragma omp task shared(tasks) firstprivate(i)
        {
            long mine = caught(i);
#pragma omp atomic
            tasks += mine;
        }
        long mine = caught(i + 1);
#pragma omp atomic
        tasks += mine;
    }
    printf("in tasks: %ld\n", tasks);
    EQ(alive, 0);
}

// Destructors run loops of their own during unwinding.
struct Loops {
    long *sum;
    ~Loops() {
        long mine = 0;
#pragma omp parallel for schedule(dynamic) num_threads(3) reduction(+ : mine)
        for (int i = 0; i < 40; i++) {
            work(i);
            mine += i;
        }
#pragma omp atomic
        *sum += mine;
    }
};

static void in_destructors() {
    long sum = 0;
    omp_set_max_active_levels(2);
#pragma omp parallel for schedule(dynamic) num_threads(4)
    for (int i = 0; i < 40; i++) {
        try {
            Loops loops{&sum};
            deep(2 * (i % 20) + 1, 2);
        } catch (const Odd &o) {
#pragma omp atomic
            sum += o.value;
        }
    }
    omp_set_max_active_levels(1);
    printf("in destructors: %ld\n", sum);
}

int main() {
    t_watchdog();
    threads = t_threads();
    omp_set_dynamic(0);
    omp_set_num_threads(threads);
    SUM(schedule(static));
    SUM(schedule(dynamic));
    SUM(schedule(dynamic, 3));
    SUM(schedule(guided));
    SUM(schedule(nonmonotonic : dynamic, 2));
    omp_set_schedule(omp_sched_guided, 2);
    SUM(schedule(runtime));
    kept();
    inside_of_others();
    in_destructors();
    return t_ok("omp_exceptions");
}
