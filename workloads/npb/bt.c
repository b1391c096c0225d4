/* SPDX-License-Identifier: MIT */
// NPB BT: an alternating-direction implicit (ADI) solver of the discrete Navier-Stokes equations.
// Each line of the grid gives a block-tridiagonal system with blocks of 5x5. Specification: D.
// Bailey and others, "The NAS Parallel Benchmarks", NASA report RNR-94-007, 1994, and NAS-95-020,
// 1995. Parallelization: H. Jin and others, "The OpenMP Implementation of NAS Parallel Benchmarks",
// NASA report NAS-99-011, 1999.
//
// Synchronization: a time step has five parallel regions: the right-hand side, three solvers and
// the update. The first has five barriers and the others one each, at their ends: 9 barriers a
// step. The loops are static. The threads divide the n-2 inner planes of a grid of n^3 points: x-y
// planes, but x-z planes in the z solver. Threads beyond n-2 idle. With fewer threads, some have a
// plane less than others and wait: n-2 is 10, 22, 62 or 100.
//
// Differences: the solver keeps one block for each point of a line, not three. The rows of the
// boundary, whose solution is 0, are left out.
#include <omp.h>

#include "navier_adi.h"
#include "navier_block.h"

// The equations of a point after elimination: x[n] + block x[n+1] = right, the last column.
typedef double row[5][6];

// Solve the system of a line. Pre: the right-hand side is 0 on the boundary.
INLINE void solve_line(struct grid *g, int d, long start) {
    const long stride = g->stride[d];
    row line[MAX_EDGE];
    memset(line[0], 0, sizeof line[0]);
    for (int n = 1; n < g->edge - 1; n++) {
        const long p = start + n * stride;
        block before, here, after;
        neighbour_block(before, g, d, -1, p - stride);
        identity_block(here);
        add_viscosity(here, d, g->u[p], &g->flow[p], 2 * g->step * g->second);
        neighbour_block(after, g, d, 1, p + stride);
        for (int m = 0; m < 5; m++) {
            memcpy(line[n][m], after[m], sizeof after[m]);
            line[n][m][5] = g->rhs[p][m];
            for (int c = 0; c < 5; c++) {
                const double factor = before[m][c];
                for (int to = 0; to < 5; to++)
                    here[m][to] -= factor * line[n - 1][c][to];
                line[n][m][5] -= factor * line[n - 1][c][5];
            }
        }
        solve_block(here, line[n][0], 6);
    }
    for (int n = g->edge - 2; n > 0; n--) {
        const long p = start + n * stride;
        for (int m = 0; m < 5; m++) {
            g->rhs[p][m] = line[n][m][5];
            for (int c = 0; c < 5; c++)
                g->rhs[p][m] -= line[n][m][c] * g->rhs[p + stride][c];
        }
    }
}

static void solve_x(struct grid *g, int j, int k) { solve_line(g, 0, grid_at(g, 0, j, k)); }
static void solve_y(struct grid *g, int i, int k) { solve_line(g, 1, grid_at(g, i, 0, k)); }
static void solve_z(struct grid *g, int i, int j) { solve_line(g, 2, grid_at(g, i, j, 0)); }

static void time_step(struct grid *g) {
    adi_right_hand_side(g);
    for_lines(g, solve_x);
    for_lines(g, solve_y);
    for_lines(g, solve_z);
    for_lines(g, add_row);
}

static const struct adi_problem problem[] = {
    {12,
     60,
     0.010,
     {{1.7034283709541311e-01, 1.2975252070034097e-02, 3.2527926989486055e-02,
       2.6436421275166801e-02, 1.9211784131744430e-01},
      {4.9976913345811579e-04, 4.5195666782961927e-05, 7.3973765172921357e-05,
       7.3821238632439731e-05, 8.9269630987491446e-04}}},
    {24,
     200,
     0.0008,
     {{0.1125590409344e+03, 0.1180007595731e+02, 0.2710329767846e+02, 0.2469174937669e+02,
       0.2638427874317e+03},
      {0.4419655736008e+01, 0.4638531260002e+00, 0.1011551749967e+01, 0.9235878729944e+00,
       0.1018045837718e+02}}},
    {64,
     200,
     0.0008,
     {{1.0806346714637264e+02, 1.1319730901220813e+01, 2.5974354511582465e+01,
       2.3665622544678910e+01, 2.5278963211748344e+02},
      {4.2348416040525025e+00, 4.4390282496995698e-01, 9.6692480136345650e-01,
       8.8302063039765474e-01, 9.7379901770829278e+00}}},
    {102,
     200,
     0.0003,
     {{1.4233597229287254e+03, 9.9330522590150238e+01, 3.5646025644535285e+02,
       3.2485447959084092e+02, 3.2707541254659363e+03},
      {5.2969847140936856e+01, 4.4632896115670668e+00, 1.3122573342210174e+01,
       1.2006925323559144e+01, 1.2459576151035986e+02}}},
};

int main(int argc, char **argv) { return adi_main("npb/bt", problem, 0, time_step, argc, argv); }
