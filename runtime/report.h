/* SPDX-License-Identifier: MIT
 *
 * Print one line to the user on stderr, without stdio. Conversions: `%s`, `%u` and `%x` only.
 */
#ifndef LISSOM_REPORT_H
#define LISSOM_REPORT_H

#include <stddef.h>
#include <string.h>

void report(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
