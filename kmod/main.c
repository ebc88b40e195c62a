// SPDX-License-Identifier: GPL-2.0
/*
 * pld.ko: module init and exit, the device /dev/pld, and the file operations of the three kinds of file.
 *
 * Invariant: the module cannot be unloaded while a file or a mapping of it exists (each file's operations own a
 * module reference), so exit finds at most a work that frees the last object; init and exit are mirror images.
 */
#include <linux/compat.h>
#include <linux/init.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/workqueue.h>

#include "pld.h"

struct pld_counters pld_counters;
u64 pld_instance;
struct workqueue_struct *pld_workqueue;

static int pld_domain_release(struct inode *inode, struct file *file)
{
	if (file->private_data)
		pld_domain_put(file->private_data);
	return 0;
}

const struct file_operations pld_domain_fops = {
	.owner		= THIS_MODULE,
	.release	= pld_domain_release,
	.unlocked_ioctl	= pld_ioctl_domain,
	.compat_ioctl	= compat_ptr_ioctl,
	.show_fdinfo	= pld_fdinfo_domain,
	.llseek		= noop_llseek,
};

/* Called for every close of a descriptor, also by exit and exec: see "Objects and lifetime". */
static int pld_rank_flush(struct file *file, fl_owner_t id)
{
	struct pld_rank *rank = file->private_data;

	if (rank)
		pld_rank_closing(rank);
	return 0;
}

static int pld_rank_release(struct inode *inode, struct file *file)
{
	struct pld_rank *rank = file->private_data;

	/* A join that failed late leaves no rank here. */
	if (!rank)
		return 0;
	pld_rank_end(rank, PLD_MEMBER_RELEASED, 0);
	pld_domain_put(rank->domain);
	return 0;
}

const struct file_operations pld_rank_fops = {
	.owner		= THIS_MODULE,
	.flush		= pld_rank_flush,
	.release	= pld_rank_release,
	.mmap		= pld_mmap_rank,
	.unlocked_ioctl	= pld_ioctl_rank,
	.compat_ioctl	= compat_ptr_ioctl,
	.show_fdinfo	= pld_fdinfo_rank,
	.llseek		= noop_llseek,
};

static const struct file_operations pld_device_fops = {
	.owner		= THIS_MODULE,
	.unlocked_ioctl	= pld_ioctl_device,
	.compat_ioctl	= compat_ptr_ioctl,
	.llseek		= noop_llseek,
};

static struct miscdevice pld_misc = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "pld",
	.fops	= &pld_device_fops,
	.mode	= 0660, /* the group comes from 60-pld.rules */
};

static int __init pld_init(void)
{
	int ret;

	get_random_bytes(&pld_instance, sizeof(pld_instance));
	pld_workqueue = alloc_workqueue("pld", WQ_UNBOUND, 0);
	if (!pld_workqueue)
		return -ENOMEM;
	pld_debugfs_init();
	ret = misc_register(&pld_misc);
	if (ret)
		goto err_debugfs_exit;
	return 0;

err_debugfs_exit:
	pld_debugfs_exit();
	destroy_workqueue(pld_workqueue);
	return ret;
}

static void __exit pld_exit(void)
{
	misc_deregister(&pld_misc);
	pld_debugfs_exit();
	destroy_workqueue(pld_workqueue);
}

module_init(pld_init);
module_exit(pld_exit);

MODULE_DESCRIPTION("Windows and signal cells shared by the processes of one machine");
MODULE_AUTHOR("The pldk authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(PLD_VERSION);
