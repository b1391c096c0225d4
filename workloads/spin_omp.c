/* SPDX-License-Identifier: MIT */
// A pipelined sweep as in NPB LU's SSOR (the OpenMP version of NPB 3.x, D. Bailey et al., "The NAS
// Parallel Benchmarks"). The rows of a grid are divided among the threads, and each plane of a
// thread's rows needs the same plane of its neighbour's. The threads notify each other by flags of
// their own, and wait for them in loops without pauses. A round is a sweep up the planes, from left
// to right, and one down, from right to left.
//
//     spin_omp lu --threads 8 --rounds 50 --work 200000
//     spin_omp lu-flush ...
//
// lu has atomic flags; lu-flush plain ones with `flush`, as in most versions of LU. --work is the
// number of iterations of compute() in a round, of all threads together. The grid is compared with
// that of a serial run.
#include <omp.h>

#include "sync.h"

enum { PLANES = 32 };

// Whether the neighbour has finished a plane that its successor has not taken yet. As in LU's
// isync: the giver waits until it is 0 and sets it, the taker waits until it is 1 and clears it.
static struct flag {
    int full;
    char pad[LINE - sizeof(int)];
} *flags;

static int flush_only;

static void wait_until(struct flag *flag, int full) {
    if (flush_only) {
        // Plain loads: `flush` makes the compiler load again. (A data race in C; a habit in
        // OpenMP.)
        while (flag->full != full) {
#pragma omp flush
        }
#pragma omp flush
    } else {
        int seen;
        do {
#pragma omp atomic read acquire
            seen = flag->full;
        } while (seen != full);
    }
}

static void set(struct flag *flag, int full) {
    if (flush_only) {
#pragma omp flush
        flag->full = full;
#pragma omp flush
    } else {
#pragma omp atomic write release
        flag->full = full;
    }
}

static void take(struct flag *flag) {
    wait_until(flag, 1);
    set(flag, 0);
}

static void give(struct flag *flag) {
    wait_until(flag, 0);
    set(flag, 1);
}

struct grid {
    long rows;
    long work;      // per round, of all planes, rows and both sweeps
    uint64_t *cell; // [PLANES + 2][rows + 2]; the outermost are the fixed edge
};

static uint64_t *at(const struct grid *g, long plane, long row) {
    return &g->cell[(plane + 1) * (g->rows + 2) + row + 1];
}

static void init(struct grid *g, long rows, long work) {
    size_t cells = (size_t)(PLANES + 2) * (size_t)(rows + 2);
    g->rows = rows;
    g->work = work;
    g->cell = malloc(cells * sizeof *g->cell);
    if (!g->cell)
        fail("no memory");
    for (size_t i = 0; i < cells; i++)
        g->cell[i] = i * 0x9e3779b97f4a7c15u;
}

// Sweep one plane of rows `first` to end - 1. step: 1 on the way up, -1 on the way down. A cell
// needs the cells before it in both directions.
static void sweep_plane(const struct grid *g, long plane, long first, long end, int step) {
    for (long i = 0; i < end - first; i++) {
        long row = step > 0 ? first + i : end - 1 - i;
        uint64_t x =
            *at(g, plane, row) ^ *at(g, plane - step, row) * 3 ^ *at(g, plane, row - step) * 5;
        long parts = 2 * PLANES * g->rows,
             part = plane * g->rows + row + (step > 0 ? 0 : parts / 2);
        *at(g, plane, row) = compute(x, 1 + share(g->work, parts, part));
    }
}

// Sweep up all planes, as thread `index` of `threads`. Flag i is between threads i and i + 1.
static void up(const struct grid *g, long index, long threads, long first, long end) {
    for (long plane = 0; plane < PLANES; plane++) {
        if (index > 0)
            take(&flags[index - 1]);
        sweep_plane(g, plane, first, end, 1);
        if (index + 1 < threads)
            give(&flags[index]);
    }
}

// Sweep down all planes, as thread `index` of `threads`.
static void down(const struct grid *g, long index, long threads, long first, long end) {
    for (long plane = PLANES - 1; plane >= 0; plane--) {
        if (index + 1 < threads)
            take(&flags[index]);
        sweep_plane(g, plane, first, end, -1);
        if (index > 0)
            give(&flags[index - 1]);
    }
}

int main(int argc, char **argv) {
    struct options o = parse(argc, argv);
    flush_only = !strcmp(o.workload, "lu-flush");
    if (!flush_only && strcmp(o.workload, "lu"))
        fail("unknown workload %s", o.workload);
    flags = calloc((size_t)o.threads, sizeof *flags);
    if (!flags)
        fail("no memory");
    struct grid grid, serial;
    long rows = o.threads > 64 ? o.threads : 64; // at least one for each thread
    init(&grid, rows, o.work);
    init(&serial, rows, o.work);

    struct span span = {0, 0};
    long team = 0;
    omp_set_dynamic(0);
#pragma omp parallel num_threads((int)o.threads)
    {
        long index = omp_get_thread_num(), from = 0;
        for (long i = 0; i < index; i++)
            from += share(rows, o.threads, i);
        long end = from + share(rows, o.threads, index);
#pragma omp single
        team = omp_get_num_threads();
        // The barrier at the end of `single` is the gate. A smaller team would wait for ever: no
        // thread at the end of the line would take the last flag.
        if (team == o.threads) {
            double begun = now();
            for (long i = 0; i < o.rounds; i++) {
                up(&grid, index, o.threads, from, end);
#pragma omp barrier
                down(&grid, index, o.threads, from, end);
#pragma omp barrier
            }
            double ended = now();
#pragma omp critical
            span_add(&span, begun, ended);
        }
    }
    if (team != o.threads)
        fail("OpenMP made a team of %ld threads, not %ld", team, o.threads);

    for (long i = 0; i < o.rounds; i++) {
        up(&serial, 0, 1, 0, rows);
        down(&serial, 0, 1, 0, rows);
    }
    if (memcmp(grid.cell, serial.cell,
               sizeof *grid.cell * (size_t)(PLANES + 2) * (size_t)(rows + 2)))
        fail("%s: the result is not that of a serial run", o.workload);
    report(&o, o.rounds, span_seconds(&span), -1);
    return 0;
}
