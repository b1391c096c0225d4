/* SPDX-License-Identifier: MIT
 *
 * Notices when the process is about to make its second thread. Until then a process needs nothing
 * of the runtime (docs/start.md).
 *
 * libc makes threads by the system call of its functions clone and __clone3. Both are assembly:
 *
 *     mov $number,%eax ; syscall ; test %rax,%rax
 *
 * The first of these instructions becomes a jump to notice.S. That looks at the flags of the call,
 * and makes it as it is unless it is for a thread.
 */
#ifndef LISSOM_NOTICE_H
#define LISSOM_NOTICE_H

#include <stdbool.h>
#include <stdint.h>

/* Called with all signals blocked, on a stack of 64 KiB, once in a process. `unfit`: why the code
 * must not be changed, or cannot be; NULL: it can. */
typedef void notice_function(const char *unfit);

/* Calls f before the process makes its second thread. `clone`: libc's function. Pre: one thread.
 * Returns false if that cannot be noticed here: an unknown libc, or code that cannot be written. */
bool notice_second_thread(uintptr_t clone, bool has_clone3, notice_function *f);

/* As if the second thread were made now. Does nothing if f has been called, if nothing was
 * arranged, or in the child of a vfork. for_thread: a thread is about to be made, so that is
 * none. */
void notice_now(bool for_thread);

/* The caller is the child of a fork(2): not of a vfork. */
void notice_forked(void);

/* f will not be called any more, and libc's code is as it was. Pre: one thread. Returns false if
 * nothing was arranged, if f has been called, or in the child of a vfork. */
bool notice_never(void);

#endif
