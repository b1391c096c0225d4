/* SPDX-License-Identifier: MIT */
// All locks, once more: no include guard. See all.h.
#include "aqs.h"
#include "array.h"
#include "clh.h"
#include "cna.h"
#include "loops.h"
#include "malthusian.h"
#include "mcs.h"
#include "partitioned.h"
#include "pthread.h"
#include "queued.h"
#include "ticket.h"
#include "ttas.h"
