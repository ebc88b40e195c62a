// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* pldctl ps: the list of domains as tables for people and as JSON for programs. Both show the same facts. */
#include "pldctl.h"

#include <linux/pld.h>
#include <pldk.h>

#include <errno.h>
#include <jansson.h>
#include <pwd.h>
#include <stdio.h>
#include <time.h>

#define HOLDERS_MOST 8 /* that a line names */

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

static const char *kind_name(const struct world_window *window)
{
	if (world_is_library(window->id))
		return "library";
	return window->kind == PLD_WINDOW_SIGNAL ? "signal" : "data";
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
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

/* Who else has the world open, than the ranks that are listed anyway. */
static void print_holders(const struct world_domain *domain)
{
	int named = 0;

	for (size_t h = 0; domain->parent == ~0ull && h < domain->nholders; h++) {
		const struct world_holder *holder = &domain->holders[h];
		uint32_t r = 0;

		while (r < domain->nranks &&
		       (domain->ranks[r].state != PLD_MEMBER_ALIVE || domain->ranks[r].pid != holder->pid))
			r++;
		if (r < domain->nranks)
			continue;
		if (named++ == HOLDERS_MOST) {
			printf(", ...");
			break;
		}
		printf("%s pid %u (%s)", named == 1 ? "  held by" : ",", holder->pid,
		       *holder->comm ? holder->comm : "?");
	}
	if (named)
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

static bool is_shown(const struct world_window *window, const struct pldctl_ps_options *options)
{
	return options->has_all || !world_is_library(window->id);
}

static void print_windows(const struct world_domain *domain, const struct pldctl_ps_options *options)
{
	bool has_head = false;

	if (!domain->has_details) {
		printf("  %u window%s, %llu bytes (no details: the domain file is open nowhere that may be read)\n",
		       domain->window_count, plural(domain->window_count), (unsigned long long)domain->bytes);
		return;
	}
	for (size_t w = 0; w < domain->nwindows; w++) {
		const struct world_window *window = &domain->windows[w];

		if (!is_shown(window, options))
			continue;
		if (!has_head)
			printf("  %6s %-7s %14s %7s %8s %10s\n", "WINDOW", "KIND", "BYTES/RANK", "OPENED", "CREATOR",
			       "AGE");
		has_head = true;
		printf("  %6u %-7s %14llu %7u ", window->id, kind_name(window), (unsigned long long)window->bytes,
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
		char what[80], from[16] = "any";

		if (world_collective_call(waiter)) {
			world_waiter_text(waiter, what, sizeof(what));
			printf("  %6u %8u %-56s %9.1fs\n", waiter->rank, waiter->tid, what,
			       seconds_since(waiter->since_ns));
			continue;
		}
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

void pldctl_ps_text(const struct world_list *list, const struct pldctl_ps_options *options, unsigned int hidden)
{
	size_t unused = 0;

	for (size_t d = 0; d < list->ndomains; d++) {
		if (!options->has_all && !world_is_in_use(&list->domains[d])) {
			unused++;
			continue;
		}
		print_head(&list->domains[d]);
		print_holders(&list->domains[d]);
		print_ranks(&list->domains[d]);
		print_windows(&list->domains[d], options);
		print_waiters(&list->domains[d]);
	}
	if (unused == list->ndomains)
		printf("no domains%s\n", unused ? " in use" : "");
	if (unused)
		printf("%zu domain%s without a living rank: see --all\n", unused, plural(unused));
	if (hidden)
		printf("%u process%s of other users %s not looked at; root sees them\n", hidden,
		       hidden == 1 ? "" : "es", hidden == 1 ? "was" : "were");
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

static json_t *json_windows(const struct world_domain *domain, const struct pldctl_ps_options *options)
{
	json_t *array = json_array();

	for (size_t w = 0; w < domain->nwindows; w++) {
		const struct world_window *window = &domain->windows[w];

		if (!is_shown(window, options))
			continue;
		json_array_append_new(
			array,
			json_pack("{si ss sI si si so so so}", "id", (int)window->id, "kind", kind_name(window),
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
		uint64_t call = world_collective_call(waiter);

		json_array_append_new(array,
				      json_pack("{si si si si ss sI sI so si sf so ss?}", "rank", (int)waiter->rank, "tid",
						(int)waiter->tid, "window", (int)waiter->window, "cell",
						(int)waiter->cell, "cmp", world_cmp_name(waiter->cmp), "expected",
						(json_int_t)waiter->expected, "seen", (json_int_t)waiter->seen, "from",
						known(waiter->from, waiter->from != PLD_RANK_ANY), "npreds",
						(int)waiter->npreds, "seconds", seconds_since(waiter->since_ns), "call",
						known((json_int_t)call, call != 0), "op",
						waiter->op ? pldk_event_name(waiter->op) : NULL));
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

static json_t *json_holders(const struct world_domain *domain)
{
	json_t *array = json_array();

	for (size_t h = 0; h < domain->nholders; h++) {
		json_t *comm = json_string(domain->holders[h].comm); /* NULL if it is no UTF-8 */

		json_array_append_new(array, json_pack("{si so}", "pid", (int)domain->holders[h].pid, "comm",
						       comm ? comm : json_null()));
	}
	return array;
}

static json_t *json_domain(const struct world_domain *domain, const struct pldctl_ps_options *options)
{
	return json_pack("{ss sI sI so sI sI si si so si si so so so si sI sb so so so so}", "provider", domain->provider,
			 "file", (json_int_t)domain->key, "id", (json_int_t)domain->id, "parent",
			 known((json_int_t)domain->parent, domain->parent != ~0ull), "uid", (json_int_t)domain->uid,
			 "pid", (json_int_t)domain->pid, "nranks", (int)domain->nranks, "joined", (int)domain->joined,
			 "missing", json_missing(domain), "finalised", (int)domain->finalised, "dead",
			 (int)domain->dead, "first_dead", known(domain->first_dead, domain->first_dead != PLD_RANK_ANY),
			 "abort_code", known(domain->poison & ~PLD_POISON_SET, domain->poison != 0), "abort_rank",
			 known(domain->poison_rank, domain->poison && domain->poison_rank != PLD_RANK_ANY),
			 "window_count", (int)domain->window_count, "bytes", (json_int_t)domain->bytes, "has_details",
			 domain->has_details, "ranks", json_ranks(domain), "windows", json_windows(domain, options),
			 "waiters", json_waiters(domain), "holders", json_holders(domain));
}

int pldctl_ps_json(const struct world_list *list, const struct pldctl_ps_options *options, unsigned int hidden)
{
	json_t *domains = json_array(), *root;
	int unused = 0, ret;

	for (size_t d = 0; d < list->ndomains; d++) {
		if (options->has_all || world_is_in_use(&list->domains[d]))
			json_array_append_new(domains, json_domain(&list->domains[d], options));
		else
			unused++;
	}
	root = json_pack("{so si si}", "domains", domains, "unused_domains", unused, "hidden_processes", (int)hidden);
	if (!root)
		return -ENOMEM;
	ret = json_dumpf(root, stdout, JSON_INDENT(2)) ? -EIO : 0;
	json_decref(root);
	printf("\n");
	return ret;
}
