/* SPDX-License-Identifier: MIT
 *
 * Included before each of glibc's tests and the sources of its test support library: definitions
 * from the command line of glibc's own build, or from internal headers. Those headers are empty
 * files (EMPTY_HEADERS in scripts/conformance/glibc.py).
 *
 */
#ifndef CONFORMANCE_SHIM_H
#define CONFORMANCE_SHIM_H

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/cdefs.h>

#define TIMEOUTFACTOR 1
#define HAVE_TUNABLES 0
#define PTHREAD_IN_LIBC 1
#define TEST_COMPAT(library, from, to) 0
#define _STACK_GROWS_DOWN 1
#define STACK_GROWS_DOWN 1
#define DEFAULT_STACK_PERMS (PF_R | PF_W | PF_X)

#define attribute_hidden
#define libc_hidden_proto(name)
#define inhibit_loop_to_libcall

/* glibc's own signals, which sigfillset omits. */
#define SIGCANCEL 32
#define SIGTIMER SIGCANCEL
#define SIGSETXID 33
#define is_internal_signal(s) ((s) == SIGCANCEL || (s) == SIGSETXID)

#define atomic_load_relaxed(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define atomic_load_acquire(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define atomic_store_relaxed(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define atomic_store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define atomic_fetch_add_relaxed(p, v) __atomic_fetch_add(p, v, __ATOMIC_RELAXED)
#define atomic_fetch_add_acquire(p, v) __atomic_fetch_add(p, v, __ATOMIC_ACQUIRE)

#endif
