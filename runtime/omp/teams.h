/* SPDX-License-Identifier: MIT
 *
 * The size of OpenMP's teams: docs/omp.md.
 */
#ifndef LISSOM_TEAMS_H
#define LISSOM_TEAMS_H

#include "sched/thread.h"

/* What teams.c calls of the same library: for patch_config. */
extern const char *const omp_functions_beside[PATCH_BESIDE];

/* From entry.S, when a region is about to begin: the call's third argument, and the first one.
 * Post: what is to stand in the third one's place. */
uint64_t lissom_omp_team(const struct patch_redirect *function, uint64_t third, void *first);

#endif
