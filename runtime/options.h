/* SPDX-License-Identifier: MIT
 *
 * Options that `lissom run` passes on in the environment (abi.h, LISSOM_ENV_*).
 */
#ifndef LISSOM_OPTIONS_H
#define LISSOM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct options {
    bool verbose;
    bool malleable;
    bool shake_loops;
    bool small_teams;
    bool patch_by_mprotect;
    bool at_once;
    enum { SEES_MACHINE, SEES_SLOTS, SEES_WHOLE } visible_cpus;
    int stats_fd; /* -1: none */
    uint32_t cpus;
    uint32_t max_threads; /* of an OpenMP team; 0: as the program asks */
    uint32_t active_threads;
};
/* Written once, by options_read. */
extern struct options options;

/* Read the options, and set those of sched, of the spin threshold and of the manager. Calls nothing
 * of libc. Returns false if the user has switched lissom off. */
bool options_read(char **environment);

#endif
