/* SPDX-License-Identifier: MIT
 *
 * The size of OpenMP teams: docs/design/malleable-openmp.md.
 */
#ifndef LISSOM_TEAMS_H
#define LISSOM_TEAMS_H

#include "sched/thread.h"

/* Functions of the same library that teams.c calls, for patch_config. */
extern const char *const omp_functions_beside[PATCH_BESIDE];

/* Arguments of a redirected call. entry.S knows the layout. */
struct team_call {
    uint64_t first, third;
};

/* Set the size of all teams. The number of threads that the program requests is then the initial
 * active count of its loops (loops.h). 0: teams have the size that the program requests. Called by
 * the constructor. */
void teams_init(uint32_t ceiling);

/* Adjust the arguments of a call of `function`, which begins a region or sets the size of teams.
 * Called by entry.S. */
void lissom_omp_team(const struct patch_redirect *function, struct team_call *call);

#endif
