/* SPDX-License-Identifier: MIT
 *
 * Memory that the processes of one user share, for what has to be quicker than the file of peers
 * (monitor/peers.h): turns (sched/turns.h), and spin sites (spin/exchange.h). A sealed memfd:
 * nobody can truncate it, so it can be mapped. The first process that needs it makes it. The others
 * open it through /proc/PID/task/TID/fd of a process that has it, which the kernel permits to the
 * same user.
 *
 * All by the monitor, which has descriptors of its own.
 */
#ifndef LISSOM_DOMAIN_H
#define LISSOM_DOMAIN_H

#include "abi.h"

#include <stdbool.h>

/* The calling thread is the monitor now. */
void domain_begin(void);
/* In the child, which has nothing mapped. */
void domain_after_fork(void);
/* Maps the domain of the first fresh entry of `peer`, or makes one. Stores in `entry`, this
 * process's, of index `self`, how others open it. Exchanges spin sites. Opens files. */
void domain_follow(struct lissom_peer *entry, uint32_t self,
                   const struct lissom_peer peer[LISSOM_MAX_PEERS],
                   const bool fresh[LISSOM_MAX_PEERS]);

#endif
