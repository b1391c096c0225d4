// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/lissom_ple. Reading returns a line about the module and one for each VM. Writing "vm PID
 * window N" asks for a window, "vm PID default" gives it up. When an open file is closed, however
 * its process ends, all windows that were asked for through it are given up.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mm.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <asm/tsc.h>

#include "lissom_ple.h"

static void show_vm(struct seq_file *m, const struct vm_view *vm)
{
	seq_printf(m, "vm=%d id=%llu vcpus=%u window=%u own=%u entries=%llu applied=%llu ", vm->pid,
		   vm->id, vm->vcpus, vm->window, vm->own, vm->entries, vm->applied);
	seq_printf(m, "ple=%llu spun=%llu before=%llu switches=%llu guest=%llu\n", vm->ple,
		   vm->spun, vm->before, vm->switches, vm->guest);
}

static int show(struct seq_file *m, void *unused)
{
	u32 i, room, count = ple_views(NULL, 0);
	struct vm_view *views;

	/* VMs that are created meanwhile are listed next time. */
	room = count + 8;
	views = kvcalloc(room, sizeof(*views), GFP_KERNEL);
	if (!views)
		return -ENOMEM;
	count = min(ple_views(views, room), room);
	seq_printf(
		m,
		"lissom_ple=1 vendor=%s default=%u largest=%u tsc_khz=%u refused=%d missed=%ld\n",
		ple_vendor.is_intel ? "intel" : "amd", ple_vendor.window, ple_vendor.largest,
		tsc_khz, ple_is_refused, atomic_long_read(&ple_missed));
	for (i = 0; i < count; i++)
		show_vm(m, &views[i]);
	kvfree(views);
	return 0;
}

static int control_open(struct inode *inode, struct file *file)
{
	/* misc_open stores its device here, but single_open needs NULL. */
	file->private_data = NULL;
	return single_open(file, show, NULL);
}

static ssize_t control_write(struct file *file, const char __user *from, size_t length,
			     loff_t *offset)
{
	char text[64], *line;
	int pid, end = 0, error;
	unsigned int window = 0;

	if (length >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, length))
		return -EFAULT;
	text[length] = 0;
	line = strim(text);
	if (sscanf(line, "vm %d window %u%n", &pid, &window, &end) == 2 && !line[end]) {
		if (!window || window > ple_vendor.largest)
			return -ERANGE;
	} else if (sscanf(line, "vm %d default%n", &pid, &end) != 1 || !end || line[end]) {
		return -EINVAL;
	} else {
		window = 0;
	}
	error = ple_ask(pid, window, file);
	return error ? error : length;
}

static int control_release(struct inode *inode, struct file *file)
{
	ple_release(file);
	return single_release(inode, file);
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = control_open,
	.read = seq_read,
	.write = control_write,
	.llseek = seq_lseek,
	.release = control_release,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "lissom_ple",
	.fops = &operations,
	.mode = 0600,
};

int control_register(void)
{
	return misc_register(&device);
}

void control_unregister(void)
{
	misc_deregister(&device);
}
