/* SPDX-License-Identifier: MIT
 *
 * The size of OpenMP's teams: docs/omp.md.
 */
#ifndef LISSOM_TEAMS_H
#define LISSOM_TEAMS_H

#include "sched/thread.h"

/* What teams.c calls of the same library: for patch_config. */
extern const char *const omp_functions_beside[PATCH_BESIDE];

/* Arguments of a redirected call. Layout known to entry.S. */
struct team_call {
    uint64_t first, third;
};

/* Sets the size of all teams; the number of threads that the program asks for is then the initial
 * active count of its loops (loops.h). 0: teams are as the program asks. In the constructor. */
void teams_init(uint32_t ceiling);

/* Adjusts the arguments of a call of `function`, which begins a region or sets the size of teams.
 * From entry.S. */
void lissom_omp_team(const struct patch_redirect *function, struct team_call *call);

#endif
