// SPDX-License-Identifier: GPL-2.0
/* Read files of sysfs: the kernel's own code has no other access to what modules publish there. */
#include <linux/fs.h>
#include <linux/mm.h>

#include "lissom_ple.h"

/* Not kernel_read_file(): that is for files to be loaded, and security modules have rules for each
 * kind of them. */
char *read_file(const char *path, size_t *size)
{
	struct file *file = filp_open(path, O_RDONLY, 0);
	loff_t at = 0, length;
	ssize_t got = 0;
	char *text;

	if (IS_ERR(file))
		return ERR_CAST(file);
	length = i_size_read(file_inode(file));
	text = length >= 0 && length <= SZ_64M ? kvmalloc(length + 1, GFP_KERNEL) : NULL;
	if (!text) {
		filp_close(file, NULL);
		return ERR_PTR(-ENOMEM);
	}
	while (at < length && (got = kernel_read(file, text + at, length - at, &at)) > 0)
		;
	filp_close(file, NULL);
	if (got < 0) {
		kvfree(text);
		return ERR_PTR(got);
	}
	text[at] = 0;
	*size = at;
	return text;
}
