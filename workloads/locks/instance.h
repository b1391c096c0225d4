/* SPDX-License-Identifier: MIT */
// All locks of one instance. No include guard: all.h includes this file twice.
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
