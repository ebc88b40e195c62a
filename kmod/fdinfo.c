// SPDX-License-Identifier: GPL-2.0
/*
 * What the module shows of itself: fdinfo of domain and rank files, which tools and tests read, and debugfs, which is
 * for people and has no format promise but for the names in "counters".
 *
 * fdinfo is lines of "key:\tvalue" (a reader skips keys that it does not know; more words may follow on a line):
 *
 *	pld-file:	domain | rank
 *	domain:		number of the domain
 *	nranks: joined: alive: finalised: dead:	members
 *	first_dead:	rank or -1
 *	poison:		0, or the reason plus PLD_POISON_SET, as on the status page
 *	poison_rank:	who did it: rank, or -1 for a launcher
 *	windows:	in the domain
 *	pages:		that these take, slabs of all ranks
 *	bytes:		the same in bytes
 *	generation:	of the newest window
 *	waiters:	of the domain; in a rank file, of the rank
 *
 * a rank file also has
 *
 *	rank:	device:	state:	pid:	opened:
 *
 * (opened: windows that this rank has open), and a domain file and the rank files of a subset (it has no domain file)
 *
 *	member.<r>:	<state> pid=<pid> device=<id> cpu=<n> node=<n> status=<n> run=<letter or -> waiters=<n>
 *	wait:	rank=<r> tid=<t> window=<id> cell=<n> cmp=<n> expected=<n> value=<n> from=<r or -1>
 *		last=<r or -1> since_ns=<n> deadline_ns=<n> npreds=<n> flags=<hex> site=<n>   (one line a wait)
 *	window.<id>:	kind=<n> flags=<hex> bytes=<n> opened=<n> generation=<n>
 *
 * pids are those of the reader's pid namespace. Nobody is stopped: lines are read one after the other.
 */
#include <linux/debugfs.h>
#include <linux/pid_namespace.h>
#include <linux/sched/task.h>
#include <linux/seq_file.h>

#include "pld.h"

static struct dentry *pld_debugfs;

static u32 pld_domain_nwaiters(const struct pld_domain *domain)
{
	u32 i, n = 0;

	for (i = 0; i < domain->nranks; i++)
		n += READ_ONCE(domain->ranks[i].nwaiters);
	return n;
}

static void pld_show_domain(struct seq_file *m, struct pld_domain *domain)
{
	struct rb_node *node;
	u64 pages = 0;
	u32 windows, generation;

	mutex_lock(&domain->lock);
	windows = domain->nwindows;
	generation = domain->generation;
	for (node = rb_first(&domain->offsets); node; node = rb_next(node))
		pages += rb_entry(node, struct pld_window, offset_node)->mem->npages;
	mutex_unlock(&domain->lock);
	spin_lock(&domain->state_lock);
	seq_printf(m, "domain:\t%llu\nnranks:\t%u\njoined:\t%u\nalive:\t%u\nfinalised:\t%u\ndead:\t%u\n", domain->id,
		   domain->nranks, domain->njoined, domain->nalive, domain->nfinalised, domain->ndead);
	seq_printf(m, "first_dead:\t%d\npoison:\t%u\npoison_rank:\t%d\n", (int)domain->first_dead, domain->poison,
		   (int)domain->poison_rank);
	spin_unlock(&domain->state_lock);
	seq_printf(m, "windows:\t%u\npages:\t%llu\nbytes:\t%llu\ngeneration:\t%u\n", windows, pages,
		   pages << PAGE_SHIFT, generation);
}

static void pld_show_member(struct seq_file *m, struct pld_rank *rank)
{
	char run = 0;
	u32 state, pid = 0;
	s32 status;

	spin_lock(&rank->domain->state_lock);
	state = rank->state;
	status = rank->status;
	spin_unlock(&rank->domain->state_lock);
	if (state != PLD_MEMBER_ABSENT && rank->tgid) {
		pid = pid_vnr(rank->tgid);
		run = pld_rank_run_state(rank);
	}
	seq_printf(m, "member.%u:\t%s pid=%u device=%u cpu=%u node=%d status=%d run=%c waiters=%u\n", rank->index,
		   pld_member_state_name(state), pid, rank->device_id, rank->cpu, (int)rank->node, status,
		   run ? run : '-', READ_ONCE(rank->nwaiters));
}

static void pld_show_waits(struct seq_file *m, struct pld_rank *rank)
{
	struct pld_ledger_entry e;
	const struct pld_waiter *w;

	spin_lock(&rank->wait_lock);
	list_for_each_entry(w, &rank->waiters, node) {
		pld_ledger_fill(&e, w);
		seq_printf(m, "wait:\trank=%u tid=%d window=%u cell=%u cmp=%u expected=%lld value=%lld from=%d last=%d ",
			   e.rank, task_pid_vnr(w->task), e.window_id, e.cell, e.cmp, e.expected, e.value, (int)e.from,
			   (int)e.last_notifier);
		seq_printf(m, "since_ns=%llu deadline_ns=%llu npreds=%u flags=%x site=%u\n", e.since_ns,
			   e.deadline_ns, e.npreds, e.flags, e.site);
	}
	spin_unlock(&rank->wait_lock);
}

static void pld_show_windows(struct seq_file *m, struct pld_domain *domain)
{
	struct rb_node *node;

	mutex_lock(&domain->lock);
	for (node = rb_first(&domain->offsets); node; node = rb_next(node)) {
		const struct pld_window *win = rb_entry(node, struct pld_window, offset_node);

		seq_printf(m, "window.%u:\tkind=%u flags=%x bytes=%llu opened=%u generation=%u\n", win->id, win->kind,
			   win->flags, win->bytes, win->nopened, win->generation);
	}
	mutex_unlock(&domain->lock);
}

static void pld_show_details(struct seq_file *m, struct pld_domain *domain)
{
	u32 i;

	for (i = 0; i < domain->nranks; i++)
		pld_show_member(m, &domain->ranks[i]);
	for (i = 0; i < domain->nranks; i++)
		pld_show_waits(m, &domain->ranks[i]);
	pld_show_windows(m, domain);
}

/**
 * pld_fdinfo_domain() - /proc/PID/fdinfo of a domain file
 * @m: output
 * @file: the file
 *
 * Context: Process context.
 */
void pld_fdinfo_domain(struct seq_file *m, struct file *file)
{
	struct pld_domain *domain = file->private_data;

	seq_puts(m, "pld-file:\tdomain\n");
	pld_show_domain(m, domain);
	seq_printf(m, "waiters:\t%u\n", pld_domain_nwaiters(domain));
	pld_show_details(m, domain);
}

/**
 * pld_fdinfo_rank() - /proc/PID/fdinfo of a rank file
 * @m: output
 * @file: the file
 *
 * Context: Process context.
 */
void pld_fdinfo_rank(struct seq_file *m, struct file *file)
{
	struct pld_rank *rank = file->private_data;
	struct pld_domain *domain = rank->domain;
	struct rb_node *node;
	u32 opened = 0;

	seq_puts(m, "pld-file:\trank\n");
	pld_show_domain(m, domain);
	mutex_lock(&domain->lock);
	for (node = rb_first(&domain->offsets); node; node = rb_next(node))
		opened += test_bit(rank->index, rb_entry(node, struct pld_window, offset_node)->opened);
	mutex_unlock(&domain->lock);
	seq_printf(m, "rank:\t%u\ndevice:\t%u\nstate:\t%s\npid:\t%d\nopened:\t%u\nwaiters:\t%u\n", rank->index,
		   rank->device_id, pld_member_state_name(READ_ONCE(rank->state)), pid_vnr(rank->tgid), opened,
		   READ_ONCE(rank->nwaiters));
	if (domain->parent_ranks)
		pld_show_details(m, domain);
}

static int pld_domains_show(struct seq_file *m, void *unused)
{
	struct pld_domain *domain;

	mutex_lock(&pld_domains_lock);
	list_for_each_entry(domain, &pld_domains, node) {
		pld_show_domain(m, domain);
		seq_printf(m, "waiters:\t%u\n", pld_domain_nwaiters(domain));
		pld_show_details(m, domain);
		seq_putc(m, '\n');
		cond_resched();
	}
	mutex_unlock(&pld_domains_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(pld_domains);

static int pld_counters_show(struct seq_file *m, void *unused)
{
	seq_printf(m, "domains:\t%lld\nmembers:\t%lld\nwindows:\t%lld\npages:\t%lld\nwaiters:\t%lld\nverdicts:\t%lld\n",
		   (long long)atomic64_read(&pld_counters.domains), (long long)atomic64_read(&pld_counters.members),
		   (long long)atomic64_read(&pld_counters.windows), (long long)atomic64_read(&pld_counters.pages),
		   (long long)atomic64_read(&pld_counters.waiters), (long long)atomic64_read(&pld_counters.verdicts));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(pld_counters);

/**
 * pld_debugfs_init() - make /sys/kernel/debug/pld
 *
 * Without debugfs the module works the same.
 */
void pld_debugfs_init(void)
{
	pld_debugfs = debugfs_create_dir("pld", NULL);
	debugfs_create_file("domains", 0400, pld_debugfs, NULL, &pld_domains_fops);
	debugfs_create_file("counters", 0444, pld_debugfs, NULL, &pld_counters_fops);
}

/**
 * pld_debugfs_exit() - remove it
 */
void pld_debugfs_exit(void)
{
	debugfs_remove(pld_debugfs);
}
