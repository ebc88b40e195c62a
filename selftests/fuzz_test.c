// SPDX-License-Identifier: GPL-2.0
/*
 * Random calls: several processes with several threads each throw ioctls of right and wrong numbers and sizes, bad
 * pointers and huge counts at a domain that they share and at domains of their own, while files are closed, windows
 * are mapped, moved and unmapped, POSIX signals arrive, children are forked and everybody is killed. Nothing is
 * expected of a single call. Afterwards everybody is gone, the counters are those of before, and a fresh domain works;
 * that the kernel's log stays clean is for who runs the test.
 *
 * PLD_FUZZ_SECONDS says for how long (3, at most 240), PLD_FUZZ_SEED repeats a run: each thread draws the same numbers
 * again, but how the threads meet is the scheduler's choice.
 *
 * Rules for what is here: fuzzing processes touch windows only through the kernel (which answers EFAULT where another
 * thread unmapped them) and map nothing outside their arena, so any end but exit and SIGKILL is a fault.
 */
#include "pld_test.h"

#include <sys/random.h>
#include <sys/uio.h>

#define PROCS 3
#define THREADS 3
#define RANKS 6
#define NROWS 20
#define ROOM 640 /* bytes of the largest argument that is ever passed */
#define MAPS 16
#define MAP_BYTES (256 * PLD_PAGE)
#define ENTRIES (PLD_MAX_CELLS_PER_CALL + 8)

enum slot { DEVICE, DOMAINS = 1, RANK_FILES = 6, SLOTS = 20 };

static const unsigned long commands[NROWS] = {
	PLD_IOC_GET_INFO, PLD_IOC_DOMAIN_CREATE, PLD_IOC_DOMAIN_JOIN, PLD_IOC_DOMAIN_JOIN_TOKEN, PLD_IOC_DOMAIN_SUBSET,
	PLD_IOC_DOMAIN_LEAVE, PLD_IOC_DOMAIN_POISON, PLD_IOC_DOMAIN_MEMBER, PLD_IOC_DOMAIN_TOKEN,
	PLD_IOC_DOMAIN_MEMBER_END, PLD_IOC_WINDOW_CREATE, PLD_IOC_WINDOW_DESTROY, PLD_IOC_WINDOW_INFO,
	PLD_IOC_WINDOW_RESET, PLD_IOC_CELL_NOTIFY, PLD_IOC_CELL_WAIT, PLD_IOC_CELL_NOTIFY_WAIT, PLD_IOC_LEDGER,
	PLD_IOC_VERDICT, PLD_IOC_CELL_HISTORY,
};

/* What all processes count together. */
struct tally {
	uint64_t calls;
	uint64_t ok[NROWS];
	uint64_t mapped;
	uint64_t forked;
};
static struct tally *tally;

/* One process: its files, and memory that calls may point to. All threads change all of it as they like. */
static int files[SLOTS];
static char *arena;
static struct pld_notify_cell *notifies;
static struct pld_wait_cell *waits;
static char *results;
static char *read_only;
static uint64_t offsets[8];
static uint8_t token[16];
static pthread_t threads[THREADS];

/* One thread: its random numbers, and two pages of which the second cannot be touched. */
struct fuzzer {
	uint64_t random;
	char *room;
	bool alone; /* a forked child: it has no threads, and must not wait for ever */
};

static uint64_t draw(struct fuzzer *f)
{
	uint64_t z = f->random += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static uint32_t below(struct fuzzer *f, uint32_t n)
{
	return draw(f) % n;
}

static bool one_in(struct fuzzer *f, uint32_t n)
{
	return !below(f, n);
}

static uint64_t odd_number(struct fuzzer *f)
{
	static const uint64_t odd[] = { 0, 1, 2, 7, 63, 64, 255, 1023, 1024, 1025, 4095, 4096, 4097, 65534, 65535,
					65536, 0x7fffffff, 0x80000000, 0xffffffff, 1ull << 32, INT64_MAX, 1ull << 63,
					~0ull };

	return one_in(f, 4) ? draw(f) : odd[below(f, sizeof(odd) / sizeof(odd[0]))];
}

/* Mostly below @n, sometimes anything. */
static uint64_t about(struct fuzzer *f, uint32_t n)
{
	return one_in(f, 24) ? odd_number(f) : below(f, n);
}

static uint32_t window_id(struct fuzzer *f)
{
	return one_in(f, 12) ? PLD_WINDOW_ID_SYSTEM + below(f, PLD_SYSTEM_WINDOWS) : about(f, 5);
}

static uint64_t bad_pointer(struct fuzzer *f)
{
	static const uint64_t bad[] = { 0, 8, 0x7fffffffe000, 0x7ffffffff000, 0x800000000000, 0xffff888000000000,
					0xffffffff81000000, ~0ull, ~0ull - 4095 };

	switch (below(f, 4)) {
	case 0:
		return pld_ptr(arena + below(f, MAPS * MAP_BYTES / 8) * 8); /* a window, or nothing */
	case 1:
		return pld_ptr(f->room + PLD_PAGE - below(f, 256));
	case 2:
		return pld_ptr(read_only);
	}
	return bad[below(f, sizeof(bad) / sizeof(bad[0]))];
}

static uint64_t pointer(struct fuzzer *f, const void *good)
{
	return one_in(f, 12) ? bad_pointer(f) : pld_ptr(good);
}

/* How many entries: few, as many as there may be, or nonsense. */
static uint32_t count(struct fuzzer *f)
{
	return one_in(f, 32) ? PLD_MAX_CELLS_PER_CALL : about(f, 4) + 1;
}

static uint32_t entry_size(struct fuzzer *f, uint32_t size)
{
	return one_in(f, 16) ? odd_number(f) : size;
}

static uint64_t deadline(struct fuzzer *f)
{
	/* Rarely: a thread that sleeps to the end of the round throws nothing more. */
	if (!f->alone && one_in(f, 60))
		return one_in(f, 2) ? PLD_DEADLINE_NEVER : draw(f);
	return one_in(f, 3) ? PLD_DEADLINE_POLL : pld_now() + below(f, 2 * MSEC);
}

static void fill_entry(struct fuzzer *f, uint32_t i)
{
	notifies[i] = (struct pld_notify_cell){ .window_id = one_in(f, 8) ? window_id(f) : 1,
						.generation = one_in(f, 16) ? about(f, 4) : 0,
						.rank = about(f, RANKS), .cell = about(f, 64), .op = about(f, 3),
						.reserved = one_in(f, 64), .value = one_in(f, 3) ? odd_number(f) : 1 };
	if (notifies[i].op == PLD_NOTIFY_WAKE)
		notifies[i].value = 0;
	waits[i] = (struct pld_wait_cell){ .window_id = one_in(f, 8) ? window_id(f) : 1,
					   .generation = one_in(f, 16) ? about(f, 4) : 0, .cell = about(f, 64),
					   .cmp = about(f, 6), .from = one_in(f, 3) ? about(f, RANKS) : PLD_RANK_ANY,
					   .reserved = one_in(f, 64), .expected = odd_number(f) };
}

static void fill_wait(struct fuzzer *f, struct pld_wait *w)
{
	w->cells = pointer(f, waits + below(f, 64));
	w->ncells = count(f);
	w->cell_size = entry_size(f, sizeof(*waits));
	w->flags = about(f, 8);
	w->site = draw(f);
	w->deadline_ns = deadline(f);
	if (one_in(f, 4)) {
		w->from_words = about(f, 2) + 1;
		w->from_mask = pointer(f, results + below(f, 64) * 8);
		memset(results, below(f, 64), 8);
	}
}

/* The fields that results are written to are left as they come. */
static void fill(struct fuzzer *f, unsigned long cmd, void *arg)
{
	switch (cmd) {
	case PLD_IOC_GET_INFO:
		((struct pld_info *)arg)->device_id = odd_number(f);
		break;
	case PLD_IOC_DOMAIN_CREATE: {
		struct pld_domain_create *c = arg;

		c->nranks = one_in(f, 32) ? PLD_MAX_RANKS : about(f, RANKS) + 1;
		if (one_in(f, 8)) {
			c->device_ids = pointer(f, results);
			c->cpus = pointer(f, results);
		}
		break;
	}
	case PLD_IOC_DOMAIN_JOIN:
		((struct pld_domain_join *)arg)->rank = about(f, RANKS);
		break;
	case PLD_IOC_DOMAIN_JOIN_TOKEN: {
		struct pld_domain_join_token *j = arg;

		memcpy(j->token, token, sizeof(token));
		j->rank = about(f, RANKS);
		break;
	}
	case PLD_IOC_DOMAIN_SUBSET: {
		struct pld_domain_subset *s = arg;
		uint32_t *ranks = (uint32_t *)(results + 4096 + below(f, 16) * 64), i;

		for (i = 0; i < 4; i++)
			ranks[i] = one_in(f, 16) ? odd_number(f) : (i + (*ranks & 1)) % RANKS;
		s->key = about(f, 3);
		s->nranks = one_in(f, 16) ? odd_number(f) : below(f, 4) + 1;
		s->ranks = pointer(f, ranks);
		break;
	}
	case PLD_IOC_DOMAIN_POISON:
		((struct pld_domain_poison *)arg)->reason = about(f, 65536);
		break;
	case PLD_IOC_DOMAIN_MEMBER:
		((struct pld_domain_member *)arg)->rank = about(f, RANKS);
		break;
	case PLD_IOC_DOMAIN_MEMBER_END: {
		struct pld_domain_member_end *e = arg;

		e->rank = about(f, RANKS);
		e->state = one_in(f, 8) ? odd_number(f) : PLD_MEMBER_EXITED + below(f, 2);
		e->status = about(f, 127) + 1;
		break;
	}
	case PLD_IOC_WINDOW_CREATE: {
		struct pld_window_create *c = arg;

		c->window_id = window_id(f);
		c->kind = c->window_id == 1 ? PLD_WINDOW_SIGNAL : about(f, 2);
		c->flags = PLD_WINDOW_F_ATTACH;
		if (c->window_id >= PLD_WINDOW_ID_SYSTEM && !one_in(f, 8))
			c->flags |= PLD_WINDOW_F_SYSTEM;
		if (one_in(f, 8))
			c->flags = about(f, 64);
		c->bytes = one_in(f, 32) ? odd_number(f) : one_in(f, 64) ? 4 << 20 : (c->window_id + 1) % 8 * PLD_PAGE;
		break;
	}
	case PLD_IOC_WINDOW_DESTROY:
	case PLD_IOC_WINDOW_RESET:
		*(uint32_t *)arg = window_id(f);
		break;
	case PLD_IOC_WINDOW_INFO:
	case PLD_IOC_CELL_HISTORY: {
		struct pld_cell_history *h = arg; /* a window's info begins with the same two fields */

		h->window_id = window_id(f);
		h->rank = about(f, RANKS);
		if (cmd == PLD_IOC_CELL_HISTORY)
			h->cell = about(f, 64);
		break;
	}
	case PLD_IOC_CELL_NOTIFY: {
		struct pld_notify *n = arg;

		n->cells = pointer(f, notifies + below(f, 64));
		n->ncells = count(f);
		n->cell_size = entry_size(f, sizeof(*notifies));
		break;
	}
	case PLD_IOC_CELL_WAIT:
		fill_wait(f, arg);
		break;
	case PLD_IOC_CELL_NOTIFY_WAIT: {
		struct pld_notify_wait *n = arg;

		n->notify_cells = pointer(f, notifies + below(f, 64));
		n->notify_ncells = one_in(f, 4) ? 0 : count(f);
		n->notify_cell_size = entry_size(f, sizeof(*notifies));
		fill_wait(f, &n->wait);
		break;
	}
	case PLD_IOC_LEDGER:
	case PLD_IOC_VERDICT: {
		struct pld_ledger *l = arg; /* a verdict begins with the same three fields */

		l->entries = pointer(f, results + 8192);
		l->nentries = about(f, 8);
		l->entry_size = entry_size(f, sizeof(struct pld_ledger_entry));
		break;
	}
	}
}

static int file_at(uint32_t slot)
{
	return __atomic_load_n(&files[slot], __ATOMIC_RELAXED);
}

/* The slot owns @fd from now on; what it owned before is closed. So nobody closes a number twice. */
static void put_file(uint32_t slot, int fd)
{
	int old = __atomic_exchange_n(&files[slot], fd, __ATOMIC_ACQ_REL);

	if (old >= 0)
		close(old);
}

static uint32_t domain_slot(struct fuzzer *f)
{
	return DOMAINS + below(f, RANK_FILES - DOMAINS);
}

static uint32_t rank_slot(struct fuzzer *f)
{
	return RANK_FILES + below(f, SLOTS - RANK_FILES);
}

static uint32_t slot_for(struct fuzzer *f, unsigned long cmd)
{
	if (one_in(f, 16))
		return below(f, SLOTS);
	switch (cmd) {
	case PLD_IOC_DOMAIN_CREATE:
	case PLD_IOC_DOMAIN_JOIN_TOKEN:
		return DEVICE;
	case PLD_IOC_DOMAIN_JOIN:
	case PLD_IOC_DOMAIN_MEMBER_END:
		return domain_slot(f);
	case PLD_IOC_DOMAIN_MEMBER:
	case PLD_IOC_DOMAIN_TOKEN:
	case PLD_IOC_LEDGER:
	case PLD_IOC_VERDICT:
	case PLD_IOC_CELL_HISTORY:
		return one_in(f, 2) ? domain_slot(f) : rank_slot(f);
	}
	return rank_slot(f);
}

/* Keep what later calls need: descriptors, where windows are, a token. */
static void keep(struct fuzzer *f, unsigned long cmd, const void *arg)
{
	switch (cmd) {
	case PLD_IOC_DOMAIN_CREATE:
		put_file(domain_slot(f), ((const struct pld_domain_create *)arg)->out_fd);
		break;
	case PLD_IOC_DOMAIN_JOIN:
		put_file(rank_slot(f), ((const struct pld_domain_join *)arg)->out_fd);
		break;
	case PLD_IOC_DOMAIN_JOIN_TOKEN:
		put_file(rank_slot(f), ((const struct pld_domain_join_token *)arg)->out_fd);
		break;
	case PLD_IOC_DOMAIN_SUBSET:
		put_file(rank_slot(f), ((const struct pld_domain_subset *)arg)->out_fd);
		break;
	case PLD_IOC_DOMAIN_TOKEN:
		memcpy(token, arg, sizeof(token));
		break;
	case PLD_IOC_WINDOW_CREATE:
		offsets[below(f, 8)] = ((const struct pld_window_create *)arg)->out_mmap_offset;
		break;
	}
}

/* One call with plausible arguments, or with something wrong in its number, size, content or pointer. */
static void call(struct fuzzer *f)
{
	uint32_t row = below(f, NROWS), size, i, words[ROOM / 4] = {};
	unsigned long cmd = commands[row];
	bool good = true;
	char *at;
	int fd;

	/* Else nothing would live long enough. */
	if ((cmd == PLD_IOC_DOMAIN_POISON && !one_in(f, 64)) || (cmd == PLD_IOC_DOMAIN_LEAVE && !one_in(f, 8)) ||
	    (cmd == PLD_IOC_DOMAIN_MEMBER_END && !one_in(f, 8)))
		return;
	fd = file_at(slot_for(f, cmd));
	fill(f, cmd, words);
	if (one_in(f, 8)) {
		for (i = below(f, 3); i < 3; i++)
			words[below(f, _IOC_SIZE(cmd) / 4 + 1)] = odd_number(f);
	}
	size = _IOC_SIZE(cmd);
	if (one_in(f, 16)) {
		size = below(f, ROOM);
		cmd = _IOC(_IOC_DIR(cmd), PLD_IOC_MAGIC, _IOC_NR(cmd), size);
		words[below(f, ROOM / 4)] = one_in(f, 2);
	}
	at = f->room + PLD_PAGE - size; /* what is read behind it faults */
	memcpy(at, words, size);
	if (one_in(f, 32)) {
		good = false;
		/* No type below 0x80: there are commands there that every file knows, and that reach beyond it. */
		cmd = one_in(f, 2) ? (draw(f) & 0xffffffff) | 0x8000 : cmd ^ 1u << below(f, 32);
		if (_IOC_TYPE(cmd) < 0x80)
			return;
	} else if (one_in(f, 32)) {
		good = false;
		at = (char *)(uintptr_t)bad_pointer(f);
	}
	__atomic_fetch_add(&tally->calls, 1, __ATOMIC_RELAXED);
	if (!pld_ioctl(fd, cmd, at) && good) {
		__atomic_fetch_add(&tally->ok[row], 1, __ATOMIC_RELAXED);
		keep(f, commands[row], at);
	}
}

/* A domain in which most calls make sense, in place of an old one. */
static void renew(struct fuzzer *f)
{
	uint32_t nranks = below(f, RANKS) + 1, joined = below(f, nranks) + 1, i;
	int dom = pld_domain_new(nranks), fd;
	struct pld_window_create c;

	if (dom < 0)
		return;
	for (i = 0; i < joined; i++) {
		fd = pld_join(dom, i);
		if (fd < 0)
			break;
		if (!pld_signal_window(fd, 1, 128, &c))
			offsets[0] = c.out_mmap_offset;
		put_file(rank_slot(f), fd);
	}
	put_file(domain_slot(f), dom);
}

static void map(struct fuzzer *f)
{
	char *at = arena + below(f, MAPS) * MAP_BYTES;
	uint64_t offset = one_in(f, 6) ? 0 : offsets[below(f, 8)] + below(f, 8) * PLD_PAGE;
	uint32_t flags = MAP_FIXED | (one_in(f, 16) ? MAP_PRIVATE : MAP_SHARED) | (one_in(f, 4) ? MAP_POPULATE : 0);
	uint64_t len = (one_in(f, 8) ? below(f, 256) + 1 : below(f, 4) + 1) * PLD_PAGE;

	if (one_in(f, 16))
		offset = odd_number(f) & ~(PLD_PAGE - 1);
	if (mmap64(at, len, one_in(f, 16) ? below(f, 8) : one_in(f, 2) ? PROT_READ : PROT_READ | PROT_WRITE, flags,
		   file_at(rank_slot(f)), offset) != MAP_FAILED)
		__atomic_fetch_add(&tally->mapped, 1, __ATOMIC_RELAXED);
}

/* Something that the rest of the kernel does to mappings. */
static void use_map(struct fuzzer *f)
{
	static const int advice[] = { MADV_DONTNEED, MADV_DONTFORK, MADV_DOFORK, MADV_FREE, MADV_REMOVE, MADV_HUGEPAGE,
				      MADV_MERGEABLE, MADV_COLD, MADV_PAGEOUT, MADV_WILLNEED };
	char *at = arena + below(f, MAPS) * MAP_BYTES + below(f, 2) * PLD_PAGE;
	size_t len = (below(f, 4) + 1) * PLD_PAGE;
	struct iovec here = { results + 16384, 4096 }, there = { at, 4096 };

	switch (below(f, 7)) {
	case 0:
		munmap(at, len);
		break;
	case 1:
		mprotect(at, len, below(f, 8));
		break;
	case 2:
		madvise(at, len, advice[below(f, sizeof(advice) / sizeof(advice[0]))]);
		break;
	case 3:
		mremap(at, len, (below(f, 6) + 1) * PLD_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		       arena + below(f, MAPS) * MAP_BYTES);
		break;
	case 4:
		process_vm_readv(getpid(), &here, 1, &there, 1, 0);
		break;
	case 5:
		mlock(at, len);
		break;
	case 6: /* a member may scribble on cells: values, and counts of sleepers */
		if (syscall(SYS_getrandom, at + below(f, 64) * PLD_CELL_SIZE, 24, 0) < 0)
			msync(at, len, MS_SYNC);
		break;
	}
}

static void look(struct fuzzer *f)
{
	char buf[4096];
	int fd;

	snprintf(buf, sizeof(buf), "/proc/self/fdinfo/%d", file_at(below(f, SLOTS)));
	fd = open(one_in(f, 8) ? "/sys/kernel/debug/pld/domains" : buf, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	while (read(fd, buf, sizeof(buf)) > 0)
		;
	close(fd);
}

/* A child has the files, not the memberships; it may become a member of its own. */
static void fork_child(struct fuzzer *f)
{
	pid_t pid = fork();
	int i;

	if (pid) {
		if (pid > 0)
			__atomic_fetch_add(&tally->forked, 1, __ATOMIC_RELAXED);
		return;
	}
	alarm(10);
	f->alone = true;
	f->random = ~f->random;
	for (i = 0; i < 30; i++)
		if (one_in(f, 8))
			map(f);
		else
			call(f);
	if (one_in(f, 2))
		kill(getpid(), SIGKILL);
	_exit(0);
}

static void *fuzz(void *arg)
{
	struct fuzzer *f = arg;
	int fd;

	for (;;) {
		uint64_t next = draw(f); /* however many numbers this step takes, which may depend on results */
		uint32_t what = below(f, 400);

		if (what < 1)
			fork_child(f);
		else if (what < 6)
			renew(f);
		else if (what < 10)
			put_file(DOMAINS + below(f, SLOTS - DOMAINS), -1);
		else if (what < 14) {
			fd = dup(file_at(rank_slot(f)));
			if (fd >= 0)
				put_file(rank_slot(f), fd);
		} else if (what < 18)
			look(f);
		else if (what < 22)
			pthread_kill(threads[below(f, THREADS)], SIGUSR1);
		else if (what < 60)
			map(f);
		else if (what < 90)
			use_map(f);
		else if (what < 100)
			fill_entry(f, below(f, ENTRIES));
		else
			call(f);
		f->random = next;
	}
	return NULL;
}

static void on_signal(int sig)
{
	(void)sig;
}

static void *memory(size_t len, int prot)
{
	void *p = mmap(NULL, len, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(97);
	return p;
}

/* One process: its main thread ends it after @ms, by exit or by SIGKILL. */
static void run(uint64_t seed, int dom, uint32_t rank, uint32_t ms)
{
	struct rlimit limit = { 100, 100 }; /* so that EMFILE happens too */
	struct fuzzer first = { .random = seed }, f[THREADS];
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = one_in(&first, 2) ? SA_RESTART : 0 };
	bool by_signal = one_in(&first, 2);
	uint32_t i;

	for (i = 0; i < THREADS; i++) {
		f[i] = (struct fuzzer){ .random = draw(&first), .room = memory(2 * PLD_PAGE, PROT_READ | PROT_WRITE) };
		mprotect(f[i].room + PLD_PAGE, PLD_PAGE, PROT_NONE);
	}
	sigaction(SIGUSR1, &sa, NULL);
	signal(SIGCHLD, SIG_IGN); /* children of children need no reaping */
	setrlimit(RLIMIT_NOFILE, &limit);
	arena = memory(MAPS * MAP_BYTES + PLD_PAGE * 16, PROT_NONE);
	notifies = memory(ENTRIES * sizeof(*notifies), PROT_READ | PROT_WRITE);
	waits = memory(ENTRIES * sizeof(*waits), PROT_READ | PROT_WRITE);
	results = memory(32 * PLD_PAGE, PROT_READ | PROT_WRITE);
	read_only = memory(PLD_PAGE, PROT_READ);
	for (i = 0; i < ENTRIES; i++)
		fill_entry(&first, i);
	for (i = 0; i < SLOTS; i++)
		files[i] = -1;
	files[DEVICE] = pld_open();
	for (i = DOMAINS; i < RANK_FILES; i++)
		renew(&first);
	put_file(DOMAINS, dom);
	put_file(RANK_FILES, pld_join(dom, rank));
	pld_signal_window(files[RANK_FILES], 1, 128, NULL);
	/* A thread may send to one that has not begun. */
	for (i = 0; i < THREADS; i++)
		threads[i] = pthread_self();
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, fuzz, &f[i]))
			_exit(98);
	for (uint64_t end = pld_now() + ms * MSEC; pld_now() < end;)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	if (by_signal)
		kill(getpid(), SIGKILL);
	_exit(0);
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
	return getenv(name) ? strtoull(getenv(name), NULL, 0) : otherwise;
}

/* What everybody does with the module, all in order. */
static int works(void)
{
	int dom = pld_domain_new(2), r0 = pld_join(dom, 0), r1 = pld_join(dom, 1), ret;
	struct pld_window_create c;
	char *a;

	if (r0 < 0 || r1 < 0 || pld_signal_window(r0, 1, 8, &c) || pld_signal_window(r1, 1, 8, NULL))
		return -1;
	a = pld_map(r0, c.out_mmap_offset, 2 * c.out_stride, PROT_READ | PROT_WRITE);
	if (a == MAP_FAILED || !pld_all_zero(a, 2 * c.out_stride))
		return -2;
	ret = pld_wait_ge(r1, 1, 3, 5, 0, 0, pld_now() + 20 * MSEC);
	if (ret != -ETIMEDOUT)
		return ret ? ret : -3;
	ret = pld_add(r0, 1, 1, 3, 5);
	if (!ret)
		ret = pld_wait_ge(r1, 1, 3, 5, 0, 0, pld_now() + 10 * SEC);
	if (!ret && ((struct pld_cell *)(a + c.out_stride))[3].value != 5)
		ret = -4;
	munmap(a, 2 * c.out_stride);
	close(r1);
	close(r0);
	close(dom);
	return ret;
}

FIXTURE(fuzz)
{
	struct pld_counts before;
};

FIXTURE_SETUP(fuzz)
{
	PLD_NEED_DEVICE();
	PLD_NEED_COUNTERS();
	self->before = pld_counts_now();
	tally = pld_shared(sizeof(*tally));
	ASSERT_NE(MAP_FAILED, tally);
}

FIXTURE_TEARDOWN(fuzz)
{
}

TEST_F_TIMEOUT(fuzz, random_calls_leave_a_module_that_works, 280)
{
	uint64_t seed = number_of("PLD_FUZZ_SEED", pld_now()), end = pld_now() + number_of("PLD_FUZZ_SECONDS", 3) * SEC;
	struct fuzzer f = { .random = seed };
	uint32_t round, i;

	TH_LOG("PLD_FUZZ_SEED=%" PRIu64, seed);
	for (round = 0; pld_now() < end; round++) {
		int dom = pld_domain_new(RANKS), status;
		pid_t pid[PROCS];

		ASSERT_LE(0, dom);
		for (i = 0; i < PROCS; i++) {
			uint64_t its = draw(&f);

			pid[i] = pld_fork();
			if (!pid[i])
				run(its, dom, i, 50 + its % 300);
		}
		for (i = 0; i < PROCS; i++) {
			status = pld_reap(pid[i], 20000);
			EXPECT_TRUE(!status || status == SIGKILL) TH_LOG("round %u: wait status %x", round, status);
		}
		close(dom);
		ASSERT_TRUE(PLD_WAIT_FOR(pld_counts_are(&self->before), 20000)) TH_LOG("round %u", round);
		ASSERT_EQ(0, works()) TH_LOG("round %u", round);
	}
	EXPECT_TRUE(PLD_WAIT_FOR(pld_counts_are(&self->before), 10000));
	TH_LOG("%u rounds, %" PRIu64 " calls, %" PRIu64 " mappings, %" PRIu64 " children of children", round,
	       tally->calls, tally->mapped, tally->forked);

	/*
	 * Calls that are all refused would find nothing. On a slow kernel there are too few to say so of the rare ones,
	 * and a verdict to read is only where a deadlock came about.
	 */
	for (i = 0; i < NROWS && tally->calls > 20000; i++)
		if (commands[i] != PLD_IOC_VERDICT)
			EXPECT_LT(0, tally->ok[i]) TH_LOG("command %#lx never succeeded", _IOC_NR(commands[i]));
	EXPECT_LT(0, tally->ok[0]);
	if (tally->calls > 20000)
		EXPECT_LT(0, tally->mapped);
}

TEST_HARNESS_MAIN
