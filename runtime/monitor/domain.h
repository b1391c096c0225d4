/* SPDX-License-Identifier: MIT
 *
 * Memory that the processes of one user share, for what must be faster than the file of peers
 * (monitor/peers.h): turns (sched/turns.h), and spin sites (spin/exchange.h). It is a sealed memfd:
 * nobody can truncate it, so it can be mapped. The first process that needs it makes it. The others
 * open it through /proc/PID/task/TID/fd of a process that has it. The kernel permits that to the
 * same user.
 *
 * Monitor only, except domain_after_fork. The monitor has a file descriptor table of its own.
 */
#ifndef LISSOM_DOMAIN_H
#define LISSOM_DOMAIN_H

#include "abi.h"

#include <stdbool.h>

/* Leave the domain, which stays mapped: the monitor begins, or is about to end. */
void domain_begin(void);
/* In the child, which has nothing mapped: forget the domain. */
void domain_after_fork(void);
/* Map the domain of the first fresh entry of `peer`, or make one. Stores in `entry`, which is this
 * process's entry `self`, how others open it. Joins its turns, and exchanges spin sites. Opens
 * files. */
void domain_follow(struct lissom_peer *entry, uint32_t self,
                   const struct lissom_peer peer[LISSOM_MAX_PEERS],
                   const bool fresh[LISSOM_MAX_PEERS]);

#endif
