// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* pldctl ps: the list of domains as tables for people and as JSON for programs. Both show the same facts. */
#include "pldctl.h"

#include <linux/pld.h>

#include <errno.h>
#include <jansson.h>
#include <pwd.h>
#include <stdio.h>
#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static double seconds_since(uint64_t ns)
{
	uint64_t now = now_ns();

	return now > ns ? (double)(now - ns) / 1e9 : 0;
}

static const char *kind_name(uint32_t kind)
{
	return kind == PLD_WINDOW_SIGNAL ? "signal" : "data";
}

/* How many have not joined; the first few are named. */
static void print_missing(const struct world_domain *domain)
{
	int named = 0;

	printf("joined %u/%u", domain->joined, domain->nranks);
	for (uint32_t r = 0; r < domain->nranks; r++) {
		if (domain->ranks[r].state != PLD_MEMBER_ABSENT)
			continue;
		if (named == 8) {
			printf(", ...");
			break;
		}
		if (named)
			printf(", %u", r);
		else
			printf(domain->nranks - domain->joined > 1 ? ", missing ranks %u" : ", missing rank %u", r);
		named++;
	}
}

static void print_head(const struct world_domain *domain)
{
	const struct passwd *user = getpwuid(domain->uid);

	printf("domain %s:%llu:%llu", domain->provider, (unsigned long long)domain->key,
	       (unsigned long long)domain->id);
	if (domain->parent != ~0ull)
		printf(" (subset of %llu)", (unsigned long long)domain->parent);
	if (user)
		printf("  owner %s pid %u  ", user->pw_name, domain->pid);
	else
		printf("  owner uid %u pid %u  ", domain->uid, domain->pid);
	print_missing(domain);
	if (domain->finalised)
		printf(", finalised %u", domain->finalised);
	if (domain->dead)
		printf(", dead %u (first: rank %u)", domain->dead, domain->first_dead);
	if (domain->poison && domain->poison_rank != PLD_RANK_ANY)
		printf(", aborted by rank %u with code %u", domain->poison_rank, domain->poison & ~PLD_POISON_SET);
	else if (domain->poison)
		printf(", aborted with code %u", domain->poison & ~PLD_POISON_SET);
	printf("\n");
}

static void print_ranks(const struct world_domain *domain)
{
	printf("  %5s %-10s %8s %7s %4s %s\n", "RANK", "STATE", "PID", "DEVICE", "CPU", "END");
	for (uint32_t r = 0; r < domain->nranks; r++) {
		const struct world_rank *rank = &domain->ranks[r];

		printf("  %5u %-10s %8u %7u %4u", r, world_state_name(rank->state), rank->pid, rank->device, rank->cpu);
		if (rank->state == PLD_MEMBER_EXITED && rank->status >= 0)
			printf(" code %d", rank->status);
		else if (rank->state == PLD_MEMBER_KILLED)
			printf(" POSIX signal %d", rank->status);
		printf("\n");
	}
}

static void print_windows(const struct world_domain *domain)
{
	if (!domain->has_details) {
		printf("  %u windows, %llu bytes (no details: the domain file is open nowhere that may be read)\n",
		       domain->window_count, (unsigned long long)domain->bytes);
		return;
	}
	if (!domain->nwindows)
		return;
	printf("  %6s %-6s %14s %7s %8s %10s\n", "WINDOW", "KIND", "BYTES/RANK", "OPENED", "CREATOR", "AGE");
	for (size_t w = 0; w < domain->nwindows; w++) {
		const struct world_window *window = &domain->windows[w];

		printf("  %6u %-6s %14llu %7u ", window->id, kind_name(window->kind), (unsigned long long)window->bytes,
		       window->opened);
		if (window->creator < domain->nranks)
			printf("%8u ", window->creator);
		else
			printf("%8s ", "-");
		if (window->created_ns)
			printf("%9.1fs\n", seconds_since(window->created_ns));
		else
			printf("%10s\n", "-");
	}
}

static void print_waiters(const struct world_domain *domain)
{
	if (!domain->nwaiters)
		return;
	printf("  %6s %8s %6s %6s %-24s %10s %6s %10s\n", "WAITER", "TID", "WINDOW", "CELL", "WAITS FOR", "SEEN",
	       "FROM", "SINCE");
	for (size_t w = 0; w < domain->nwaiters; w++) {
		const struct world_waiter *waiter = &domain->waiters[w];
		char what[48], from[16] = "any";

		snprintf(what, sizeof(what), "%s %lld", world_cmp_name(waiter->cmp), (long long)waiter->expected);
		if (waiter->from != PLD_RANK_ANY)
			snprintf(from, sizeof(from), "%u", waiter->from);
		printf("  %6u %8u %6u %6u %-24s %10lld %6s %9.1fs", waiter->rank, waiter->tid, waiter->window,
		       waiter->cell, what, (long long)waiter->seen, from, seconds_since(waiter->since_ns));
		if (waiter->npreds > 1)
			printf("  (one of %u cells)", waiter->npreds);
		printf("\n");
	}
}

void pldctl_ps_text(const struct world_list *list, unsigned int hidden)
{
	for (size_t d = 0; d < list->ndomains; d++) {
		print_head(&list->domains[d]);
		print_ranks(&list->domains[d]);
		print_windows(&list->domains[d]);
		print_waiters(&list->domains[d]);
	}
	if (!list->ndomains)
		printf("no domains\n");
	if (hidden)
		printf("%u processes of other users were not looked at; root sees them\n", hidden);
}

/* A number, or null where it is not known. */
static json_t *known(json_int_t value, int is_known)
{
	return is_known ? json_integer(value) : json_null();
}

static json_t *json_ranks(const struct world_domain *domain)
{
	json_t *array = json_array();

	for (uint32_t r = 0; r < domain->nranks; r++) {
		const struct world_rank *rank = &domain->ranks[r];

		json_array_append_new(array,
				      json_pack("{si ss si si si si}", "rank", (int)r, "state",
						world_state_name(rank->state), "pid", (int)rank->pid, "device",
						(int)rank->device, "cpu", (int)rank->cpu, "status", (int)rank->status));
	}
	return array;
}

static json_t *json_windows(const struct world_domain *domain)
{
	json_t *array = json_array();

	for (size_t w = 0; w < domain->nwindows; w++) {
		const struct world_window *window = &domain->windows[w];

		json_array_append_new(
			array,
			json_pack("{si ss sI si si so so so}", "id", (int)window->id, "kind", kind_name(window->kind),
				  "bytes", (json_int_t)window->bytes, "opened", (int)window->opened, "generation",
				  (int)window->generation, "page_bytes",
				  known(window->page_bytes, window->page_bytes != 0), "creator",
				  known(window->creator, window->creator < domain->nranks), "age_seconds",
				  window->created_ns ? json_real(seconds_since(window->created_ns)) : json_null()));
	}
	return array;
}

static json_t *json_waiters(const struct world_domain *domain)
{
	json_t *array = json_array();

	for (size_t w = 0; w < domain->nwaiters; w++) {
		const struct world_waiter *waiter = &domain->waiters[w];

		json_array_append_new(array,
				      json_pack("{si si si si ss sI sI so si sf}", "rank", (int)waiter->rank, "tid",
						(int)waiter->tid, "window", (int)waiter->window, "cell",
						(int)waiter->cell, "cmp", world_cmp_name(waiter->cmp), "expected",
						(json_int_t)waiter->expected, "seen", (json_int_t)waiter->seen, "from",
						known(waiter->from, waiter->from != PLD_RANK_ANY), "npreds",
						(int)waiter->npreds, "seconds", seconds_since(waiter->since_ns)));
	}
	return array;
}

static json_t *json_missing(const struct world_domain *domain)
{
	json_t *array = json_array();

	for (uint32_t r = 0; r < domain->nranks; r++)
		if (domain->ranks[r].state == PLD_MEMBER_ABSENT)
			json_array_append_new(array, json_integer(r));
	return array;
}

static json_t *json_domain(const struct world_domain *domain)
{
	return json_pack("{ss sI sI so sI sI si si so si si so so so si sI sb so so so}", "provider", domain->provider,
			 "file", (json_int_t)domain->key, "id", (json_int_t)domain->id, "parent",
			 known((json_int_t)domain->parent, domain->parent != ~0ull), "uid", (json_int_t)domain->uid,
			 "pid", (json_int_t)domain->pid, "nranks", (int)domain->nranks, "joined", (int)domain->joined,
			 "missing", json_missing(domain), "finalised", (int)domain->finalised, "dead",
			 (int)domain->dead, "first_dead", known(domain->first_dead, domain->first_dead != PLD_RANK_ANY),
			 "abort_code", known(domain->poison & ~PLD_POISON_SET, domain->poison != 0), "abort_rank",
			 known(domain->poison_rank, domain->poison && domain->poison_rank != PLD_RANK_ANY),
			 "window_count", (int)domain->window_count, "bytes", (json_int_t)domain->bytes, "has_details",
			 domain->has_details, "ranks", json_ranks(domain), "windows", json_windows(domain), "waiters",
			 json_waiters(domain));
}

int pldctl_ps_json(const struct world_list *list, unsigned int hidden)
{
	json_t *domains = json_array(), *root;
	int ret;

	for (size_t d = 0; d < list->ndomains; d++)
		json_array_append_new(domains, json_domain(&list->domains[d]));
	root = json_pack("{so si}", "domains", domains, "hidden_processes", (int)hidden);
	if (!root)
		return -ENOMEM;
	ret = json_dumpf(root, stdout, JSON_INDENT(2)) ? -EIO : 0;
	json_decref(root);
	printf("\n");
	return ret;
}
