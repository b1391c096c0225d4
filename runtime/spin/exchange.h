/* SPDX-License-Identifier: MIT
 *
 * Exchange of spin sites between processes that run the same code, such as MPI ranks. A process
 * that rarely runs needs seconds to find a site. Until it has found its loops, it keeps all others
 * waiting.
 *
 * A site is identified by the inode of its file, its offset, and a hash of the code of its loop. So
 * it is made only where the same instructions are.
 */
#ifndef LISSOM_SPIN_EXCHANGE_H
#define LISSOM_SPIN_EXCHANGE_H

#include <stdbool.h>

struct lissom_domain;

/* Publish in `domain` the sites that this process has found since the last call. NULL: there is no
 * domain. If `takes`, also make the sites of other processes, or switch them on. Each is tried
 * once, and again after `takes` was false or all sites were switched off. Monitor only; opens
 * files. */
void spin_exchange(struct lissom_domain *domain, bool takes);

#endif
