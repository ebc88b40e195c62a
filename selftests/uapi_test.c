// SPDX-License-Identifier: GPL-2.0
/*
 * The general format of every ioctl: unknown numbers, the five size cases, flags, reserved fields, pointers, the
 * wrong file, the wrong process. One table row a command; each case starts from a fresh domain and from arguments
 * that are valid otherwise.
 */
#include "pld_test.h"

#include <stddef.h>

enum where { ON_DEVICE, ON_DOMAIN, ON_RANK };

/* A world in which every command has valid arguments. */
struct world {
	int file[3];
	struct pld_notify_cell notify;
	struct pld_wait_cell wait;
	struct pld_ledger_entry entry[4];
	uint32_t ranks[2];
	uint8_t token[16];
};

struct row {
	const char *name;
	unsigned long cmd;
	enum where where;
	size_t min;
	int flags_at;
	int zero_at;
	void (*fill)(struct world *w, void *arg);
};

static void fill_none(struct world *w, void *arg)
{
	(void)w, (void)arg;
}

static void fill_domain_create(struct world *w, void *arg)
{
	(void)w;
	((struct pld_domain_create *)arg)->nranks = 2;
}

static void fill_domain_join(struct world *w, void *arg)
{
	(void)w;
	((struct pld_domain_join *)arg)->rank = 1;
}

static void fill_join_token(struct world *w, void *arg)
{
	struct pld_domain_join_token *j = arg;

	memcpy(j->token, w->token, sizeof(j->token));
	j->rank = 1;
}

static void fill_member_end(struct world *w, void *arg)
{
	struct pld_domain_member_end *e = arg;

	(void)w;
	e->rank = 1;
	e->state = PLD_MEMBER_KILLED;
	e->status = 9;
}

static void fill_subset(struct world *w, void *arg)
{
	struct pld_domain_subset *s = arg;

	s->key = 5;
	s->nranks = 2;
	s->ranks = pld_ptr(w->ranks);
}

static void fill_window_create(struct world *w, void *arg)
{
	struct pld_window_create *c = arg;

	(void)w;
	c->window_id = 2;
	c->bytes = PLD_PAGE;
}

static void fill_window(struct world *w, void *arg)
{
	(void)w;
	*(uint32_t *)arg = 1; /* window_id comes first in destroy, info, reset and history */
}

static void fill_notify(struct world *w, void *arg)
{
	struct pld_notify *n = arg;

	n->cells = pld_ptr(&w->notify);
	n->ncells = 1;
	n->cell_size = sizeof(w->notify);
}

static void fill_wait(struct world *w, void *arg)
{
	struct pld_wait *u = arg;

	u->cells = pld_ptr(&w->wait);
	u->ncells = 1;
	u->cell_size = sizeof(w->wait);
}

static void fill_notify_wait(struct world *w, void *arg)
{
	struct pld_notify_wait *u = arg;

	u->notify_cells = pld_ptr(&w->notify);
	u->notify_ncells = 1;
	u->notify_cell_size = sizeof(w->notify);
	fill_wait(w, &u->wait);
}

static void fill_ledger(struct world *w, void *arg)
{
	struct pld_ledger *l = arg; /* a verdict begins with the same three fields */

	l->entries = pld_ptr(w->entry);
	l->nentries = 4;
	l->entry_size = sizeof(w->entry[0]);
}

#define MIN(type, last) (offsetof(struct type, last) + sizeof(((struct type *)0)->last))
#define AT(type, field) ((int)offsetof(struct type, field))
#define NONE (-1)

static const struct row rows[] = {
	{ "get_info", PLD_IOC_GET_INFO, ON_DEVICE, MIN(pld_info, out_max_ranks), AT(pld_info, flags), NONE, fill_none },
	{ "domain_create", PLD_IOC_DOMAIN_CREATE, ON_DEVICE, MIN(pld_domain_create, out_fd),
	  AT(pld_domain_create, flags), AT(pld_domain_create, reserved), fill_domain_create },
	{ "domain_join", PLD_IOC_DOMAIN_JOIN, ON_DOMAIN, MIN(pld_domain_join, out_fd), AT(pld_domain_join, flags),
	  AT(pld_domain_join, reserved), fill_domain_join },
	{ "domain_join_token", PLD_IOC_DOMAIN_JOIN_TOKEN, ON_DEVICE, MIN(pld_domain_join_token, out_fd),
	  AT(pld_domain_join_token, flags), AT(pld_domain_join_token, reserved), fill_join_token },
	{ "domain_subset", PLD_IOC_DOMAIN_SUBSET, ON_RANK, MIN(pld_domain_subset, out_fd),
	  AT(pld_domain_subset, flags), NONE, fill_subset },
	{ "domain_leave", PLD_IOC_DOMAIN_LEAVE, ON_RANK, MIN(pld_domain_leave, flags), AT(pld_domain_leave, flags),
	  AT(pld_domain_leave, reserved), fill_none },
	{ "domain_poison", PLD_IOC_DOMAIN_POISON, ON_RANK, MIN(pld_domain_poison, reason),
	  AT(pld_domain_poison, flags), NONE, fill_none },
	{ "domain_member", PLD_IOC_DOMAIN_MEMBER, ON_DOMAIN, MIN(pld_domain_member, out_member),
	  AT(pld_domain_member, flags), NONE, fill_none },
	{ "domain_member_end", PLD_IOC_DOMAIN_MEMBER_END, ON_DOMAIN, MIN(pld_domain_member_end, status),
	  AT(pld_domain_member_end, flags), NONE, fill_member_end },
	{ "domain_token", PLD_IOC_DOMAIN_TOKEN, ON_DOMAIN, MIN(pld_domain_token, out_token), NONE, NONE, fill_none },
	{ "window_create", PLD_IOC_WINDOW_CREATE, ON_RANK, MIN(pld_window_create, out_created),
	  AT(pld_window_create, flags), AT(pld_window_create, reserved), fill_window_create },
	{ "window_destroy", PLD_IOC_WINDOW_DESTROY, ON_RANK, MIN(pld_window_destroy, window_id),
	  AT(pld_window_destroy, flags), NONE, fill_window },
	{ "window_info", PLD_IOC_WINDOW_INFO, ON_RANK, MIN(pld_window_info, out_mmap_offset), NONE, NONE, fill_window },
	{ "window_reset", PLD_IOC_WINDOW_RESET, ON_RANK, MIN(pld_window_reset, window_id),
	  AT(pld_window_reset, flags), NONE, fill_window },
	{ "cell_notify", PLD_IOC_CELL_NOTIFY, ON_RANK, MIN(pld_notify, cell_size), AT(pld_notify, flags), NONE,
	  fill_notify },
	{ "cell_wait", PLD_IOC_CELL_WAIT, ON_RANK, MIN(pld_wait, deadline_ns), AT(pld_wait, flags), NONE, fill_wait },
	{ "cell_notify_wait", PLD_IOC_CELL_NOTIFY_WAIT, ON_RANK, MIN(pld_notify_wait, wait.deadline_ns),
	  AT(pld_notify_wait, wait.flags), NONE, fill_notify_wait },
	{ "ledger", PLD_IOC_LEDGER, ON_DOMAIN, MIN(pld_ledger, entry_size), NONE, NONE, fill_ledger },
	{ "verdict", PLD_IOC_VERDICT, ON_DOMAIN, MIN(pld_verdict, entry_size), NONE, AT(pld_verdict, reserved),
	  fill_ledger },
	{ "cell_history", PLD_IOC_CELL_HISTORY, ON_DOMAIN, MIN(pld_cell_history, out_provenance), NONE,
	  AT(pld_cell_history, reserved), fill_window },
};

#define NROWS (sizeof(rows) / sizeof(rows[0]))
#define ROOM 512

FIXTURE(uapi)
{
	struct world w;
};

static int world_open(struct world *w)
{
	struct pld_domain_token t;

	memset(w, 0, sizeof(*w));
	w->file[ON_DEVICE] = pld_open();
	w->file[ON_DOMAIN] = pld_domain_new(2);
	w->file[ON_RANK] = pld_join(w->file[ON_DOMAIN], 0);
	if (w->file[ON_RANK] < 0 || pld_signal_window(w->file[ON_RANK], 1, 8, NULL))
		return -1;
	if (pld_ioctl(w->file[ON_DOMAIN], PLD_IOC_DOMAIN_TOKEN, &t))
		return -1;
	memcpy(w->token, t.out_token, sizeof(w->token));
	w->ranks[1] = 1;
	w->notify = (struct pld_notify_cell){ .window_id = 1, .value = 1 };
	w->wait = (struct pld_wait_cell){ .window_id = 1, .cmp = PLD_CMP_GE, .from = PLD_RANK_ANY };
	return 0;
}

static void world_close(struct world *w)
{
	close(w->file[ON_RANK]);
	close(w->file[ON_DOMAIN]);
	close(w->file[ON_DEVICE]);
}

static unsigned long with_size(unsigned long cmd, size_t size)
{
	return _IOC(_IOC_DIR(cmd), _IOC_TYPE(cmd), _IOC_NR(cmd), size);
}

/* Call with the first @size bytes of valid arguments, in memory that ends right behind them. */
static int call(struct world *w, const struct row *r, size_t size, int poke_at, uint32_t poke)
{
	static char *room;
	char arg[ROOM] = {}, *at;

	if (!room) {
		room = mmap(NULL, 2 * PLD_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		mprotect(room + PLD_PAGE, PLD_PAGE, PROT_NONE);
	}
	r->fill(w, arg);
	if (poke_at >= 0)
		memcpy(arg + poke_at, &poke, sizeof(poke));
	at = room + PLD_PAGE - size;
	memcpy(at, arg, size);
	return pld_ioctl(w->file[r->where], with_size(r->cmd, size), at);
}

static int expected(const struct row *r)
{
	return r->cmd == PLD_IOC_VERDICT ? -ENOENT : 0; /* there is none to read */
}

/* Every row in a fresh world. */
#define FOR_EACH_ROW(r)                                                                           \
	for (const struct row *r = rows; r < rows + NROWS; r++)                                                 \
		for (int _once = (world_close(&self->w), world_open(&self->w) ? -1 : 1); _once > 0; _once = 0)

FIXTURE_SETUP(uapi)
{
	PLD_NEED_DEVICE();
	ASSERT_EQ(0, world_open(&self->w));
}

FIXTURE_TEARDOWN(uapi)
{
	world_close(&self->w);
}

TEST_F(uapi, the_exact_size_is_accepted)
{
	FOR_EACH_ROW(r) {
		EXPECT_EQ(expected(r), call(&self->w, r, _IOC_SIZE(r->cmd), NONE, 0)) TH_LOG("%s", r->name);
	}
}

TEST_F(uapi, a_size_below_the_minimum_is_einval)
{
	FOR_EACH_ROW(r) {
		EXPECT_EQ(-EINVAL, call(&self->w, r, r->min - 1, NONE, 0)) TH_LOG("%s", r->name);
		EXPECT_EQ(-EINVAL, call(&self->w, r, 0, NONE, 0)) TH_LOG("%s", r->name);
	}
}

TEST_F(uapi, a_smaller_structure_is_extended_and_truncated)
{
	FOR_EACH_ROW(r) {
		EXPECT_EQ(expected(r), call(&self->w, r, r->min, NONE, 0)) TH_LOG("%s", r->name);
	}
}

TEST_F(uapi, a_larger_structure_with_a_zero_tail_is_accepted)
{
	FOR_EACH_ROW(r) {
		EXPECT_EQ(expected(r), call(&self->w, r, _IOC_SIZE(r->cmd) + 24, NONE, 0)) TH_LOG("%s", r->name);
	}
}

TEST_F(uapi, a_larger_structure_with_a_set_tail_is_e2big_and_does_nothing)
{
	FOR_EACH_ROW(r) {
		int size = _IOC_SIZE(r->cmd);

		if (!(_IOC_DIR(r->cmd) & _IOC_WRITE))
			continue; /* only read from the kernel: no tail to look at */
		EXPECT_EQ(-E2BIG, call(&self->w, r, size + 24, size + 20, 1)) TH_LOG("%s", r->name);
		EXPECT_EQ(expected(r), call(&self->w, r, size, NONE, 0)) TH_LOG("%s", r->name);
	}
}

TEST_F(uapi, unknown_flags_are_eopnotsupp_and_do_nothing)
{
	FOR_EACH_ROW(r) {
		if (r->flags_at == NONE)
			continue;
		EXPECT_EQ(-EOPNOTSUPP, call(&self->w, r, _IOC_SIZE(r->cmd), r->flags_at, 1u << 31)) TH_LOG("%s", r->name);
		EXPECT_EQ(expected(r), call(&self->w, r, _IOC_SIZE(r->cmd), NONE, 0)) TH_LOG("%s", r->name);
	}
}

TEST_F(uapi, reserved_fields_must_be_zero)
{
	FOR_EACH_ROW(r) {
		if (r->zero_at == NONE)
			continue;
		EXPECT_EQ(-EINVAL, call(&self->w, r, _IOC_SIZE(r->cmd), r->zero_at, 1)) TH_LOG("%s", r->name);
		EXPECT_EQ(expected(r), call(&self->w, r, _IOC_SIZE(r->cmd), NONE, 0)) TH_LOG("%s", r->name);
	}
}

TEST_F(uapi, a_bad_pointer_is_efault)
{
	FOR_EACH_ROW(r) {
		EXPECT_EQ(-EFAULT, pld_ioctl(self->w.file[r->where], r->cmd, (void *)8)) TH_LOG("%s", r->name);
	}
}

TEST_F(uapi, a_result_that_cannot_be_stored_is_efault_and_undone)
{
	uint64_t windows = pld_fdinfo(self->w.file[ON_RANK], "windows");

	FOR_EACH_ROW(r) {
		char *arg = mmap(NULL, PLD_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (_IOC_DIR(r->cmd) != (_IOC_READ | _IOC_WRITE) || expected(r))
			continue;
		r->fill(&self->w, arg);
		mprotect(arg, PLD_PAGE, PROT_READ);
		EXPECT_EQ(-EFAULT, pld_ioctl(self->w.file[r->where], r->cmd, arg)) TH_LOG("%s", r->name);
		EXPECT_EQ(windows, pld_fdinfo(self->w.file[ON_RANK], "windows"));
		EXPECT_EQ(expected(r), call(&self->w, r, _IOC_SIZE(r->cmd), NONE, 0)) TH_LOG("%s", r->name);
	}
}

TEST_F(uapi, unknown_type_number_and_direction_are_enotty)
{
	unsigned int nr;

	for (nr = 0; nr < 256; nr++) {
		char arg[ROOM] = {};
		bool known = false;

		for (unsigned int i = 0; i < NROWS; i++)
			known = known || _IOC_NR(rows[i].cmd) == nr;
		if (known)
			continue;
		for (int f = 0; f < 3; f++)
			EXPECT_EQ(-ENOTTY, pld_ioctl(self->w.file[f], _IOC(3, PLD_IOC_MAGIC, nr, 64), arg));
	}
	FOR_EACH_ROW(r) {
		char arg[ROOM] = {};
		int fd = self->w.file[r->where], dir = _IOC_DIR(r->cmd), size = _IOC_SIZE(r->cmd);

		nr = _IOC_NR(r->cmd);
		r->fill(&self->w, arg);
		EXPECT_EQ(-ENOTTY, pld_ioctl(fd, _IOC(dir, PLD_IOC_MAGIC + 1, nr, size), arg)) TH_LOG("%s", r->name);
		for (int d = 0; d < 4; d++) {
			if (d == dir)
				continue;
			EXPECT_EQ(-ENOTTY, pld_ioctl(fd, _IOC(d, PLD_IOC_MAGIC, nr, size), arg)) TH_LOG("%s", r->name);
		}
	}
}

TEST_F(uapi, a_command_on_the_wrong_kind_of_file_is_enotty)
{
	static const unsigned long on_domain[] = { PLD_IOC_WINDOW_CREATE, PLD_IOC_CELL_NOTIFY, PLD_IOC_CELL_WAIT,
						   PLD_IOC_DOMAIN_LEAVE, PLD_IOC_DOMAIN_SUBSET, PLD_IOC_DOMAIN_CREATE };
	static const unsigned long on_rank[] = { PLD_IOC_DOMAIN_JOIN, PLD_IOC_DOMAIN_CREATE,
						 PLD_IOC_DOMAIN_JOIN_TOKEN };
	char arg[ROOM] = {};
	unsigned int i;

	for (i = 0; i < NROWS; i++) {
		if (rows[i].where == ON_DEVICE)
			continue;
		EXPECT_EQ(-ENOTTY, pld_ioctl(self->w.file[ON_DEVICE], rows[i].cmd, arg)) TH_LOG("%s", rows[i].name);
	}
	for (i = 0; i < sizeof(on_domain) / sizeof(on_domain[0]); i++)
		EXPECT_EQ(-ENOTTY, pld_ioctl(self->w.file[ON_DOMAIN], on_domain[i], arg));
	for (i = 0; i < sizeof(on_rank) / sizeof(on_rank[0]); i++)
		EXPECT_EQ(-ENOTTY, pld_ioctl(self->w.file[ON_RANK], on_rank[i], arg));
}

TEST_F(uapi, a_rank_file_serves_only_the_process_that_joined)
{
	pid_t pid = pld_fork();

	if (!pid) {
		for (const struct row *r = rows; r < rows + NROWS; r++)
			if (r->where == ON_RANK)
				PLD_CHILD_CHECK(call(&self->w, r, _IOC_SIZE(r->cmd), NONE, 0) == -ENOTCONN);
		_exit(0);
	}
	EXPECT_CHILD_OK(pid);
	EXPECT_EQ(PLD_MEMBER_ALIVE, pld_member_state(self->w.file[ON_DOMAIN], 0));
	EXPECT_EQ(1, pld_fdinfo(self->w.file[ON_RANK], "windows"));
}

/* The same rules for the entries of arrays. */
TEST_F(uapi, array_entries_may_grow_with_zeroes_and_never_shrink)
{
	struct {
		struct pld_notify_cell e;
		uint64_t tail;
	} n[2] = { { self->w.notify, 0 }, { self->w.notify, 0 } };
	struct {
		struct pld_wait_cell e;
		uint64_t tail;
	} c[2] = { { self->w.wait, 0 }, { self->w.wait, 0 } };
	struct pld_notify notify = { .cells = pld_ptr(n), .ncells = 2, .cell_size = sizeof(n[0]) };
	struct pld_wait wait = { .cells = pld_ptr(c), .ncells = 2, .cell_size = sizeof(c[0]) };
	int fd = self->w.file[ON_RANK];

	EXPECT_EQ(0, pld_ioctl(fd, PLD_IOC_CELL_NOTIFY, &notify));
	EXPECT_EQ(1, n[0].e.out_value);
	EXPECT_EQ(2, n[1].e.out_value);
	EXPECT_EQ(0, pld_ioctl(fd, PLD_IOC_CELL_WAIT, &wait));
	EXPECT_EQ(2, c[1].e.out_value);
	n[1].tail = c[1].tail = 1;
	EXPECT_EQ(-E2BIG, pld_ioctl(fd, PLD_IOC_CELL_NOTIFY, &notify));
	EXPECT_EQ(-E2BIG, pld_ioctl(fd, PLD_IOC_CELL_WAIT, &wait));
	EXPECT_EQ(2, pld_value(fd, 1, 0, 0));
	notify.cell_size = wait.cell_size = sizeof(struct pld_wait_cell) - 8;
	EXPECT_EQ(-EINVAL, pld_ioctl(fd, PLD_IOC_CELL_NOTIFY, &notify));
	EXPECT_EQ(-EINVAL, pld_ioctl(fd, PLD_IOC_CELL_WAIT, &wait));
	notify.cell_size = wait.cell_size = 1u << 30;
	EXPECT_EQ(-E2BIG, pld_ioctl(fd, PLD_IOC_CELL_NOTIFY, &notify));
	EXPECT_EQ(-E2BIG, pld_ioctl(fd, PLD_IOC_CELL_WAIT, &wait));
}

/* J5: no byte of a result is left over from the kernel's stack, and none behind it is written. */
TEST_F(uapi, results_have_no_leftovers)
{
	struct pld_domain_member m;
	struct pld_cell_history h = { .window_id = 1, .out_reserved = POISON32 };

	memset(&m, 0x5a, sizeof(m));
	m.rank = 1;
	m.flags = 0;
	EXPECT_EQ(0, pld_ioctl(self->w.file[ON_DOMAIN], PLD_IOC_DOMAIN_MEMBER, &m));
	EXPECT_EQ(0, m.out_member.reserved);
	EXPECT_EQ(0, m.out_member.pid);
	EXPECT_EQ(0, m.out_member.host);
	EXPECT_EQ(0, pld_ioctl(self->w.file[ON_DOMAIN], PLD_IOC_CELL_HISTORY, &h));
	EXPECT_EQ(0, h.out_reserved);
}

TEST_HARNESS_MAIN
