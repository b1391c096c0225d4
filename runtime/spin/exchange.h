/* SPDX-License-Identifier: MIT
 *
 * Processes that run the same code, such as ranks of MPI, tell each other the spin sites that they
 * have found. To find one takes some seconds when a process is rarely on a CPU, and as long as one
 * process has not found its loops, it keeps all others waiting.
 *
 * A site is identified by its file's inode and offset, and by a hash of the code of its loop. So it
 * is only made where the same instructions are.
 */
#ifndef LISSOM_SPIN_EXCHANGE_H
#define LISSOM_SPIN_EXCHANGE_H

#include <stdbool.h>

struct lissom_domain;

/* Writes the sites that this process has found since the last call to `domain`; NULL: there is
 * none. takes: makes those of others, and switches on those that are off, unless it has done so for
 * all of them, `takes` has not been false since, and sites have not been switched off. By the
 * monitor; opens files. */
void spin_exchange(struct lissom_domain *domain, bool takes);

#endif
