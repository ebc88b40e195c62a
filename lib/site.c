// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Call sites: where in the user's program an operation stands.
 *
 * A site is numbered once in the process, at its first use; the number is what records and ledgers carry. The strings
 * are copied here and into the recorder of each rank that this process runs, so they outlive the program's text.
 * Sites without a macro (function pointers, other languages) are return addresses, kept in a table of their own.
 *
 * Context: the registry lock protects everything that is written; what was published is read without a lock.
 */
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SITE_NONE (PLDK__SITES + 1) /* number of all sites that came too late for the table */
#define ADDRESSES 1024u		    /* power of two */

struct site_entry {
	char text[64]; /* "train.c:42" */
	char file[44];
	char func[44];
	uint32_t line;
};

struct address {
	void *address;
	struct pldk_site site;
};

static struct site_entry entries[PLDK__SITES];
static uint32_t nentries; /* atomic */
static struct address *addresses[ADDRESSES];
static struct pldk_site no_site = { "?", "?", 0, SITE_NONE };

static const char *tail(const char *path, size_t room)
{
	size_t len = strlen(path);

	return len < room ? path : path + len - (room - 1);
}

static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/**
 * pldk__site_intern() - number a site, the slow half of pldk__site_id()
 * @site: of the user; its id is set
 *
 * Return: its number, from 1. Sites beyond PLDK__SITES share one that says nothing.
 */
uint32_t pldk__site_intern(struct pldk_site *site)
{
	struct site_entry *entry;
	uint32_t id;

	pldk__registry_lock();
	id = pldk__load_relaxed(&site->id);
	if (!id && nentries == PLDK__SITES) {
		id = SITE_NONE;
	} else if (!id) {
		entry = &entries[nentries];
		entry->line = site->line;
		snprintf(entry->file, sizeof(entry->file), "%s", tail(site->file ? site->file : "?", sizeof(entry->file)));
		snprintf(entry->func, sizeof(entry->func), "%.*s", (int)sizeof(entry->func) - 1,
			 site->func ? site->func : "?");
		if (entry->line)
			snprintf(entry->text, sizeof(entry->text), "%s:%u", base(entry->file), entry->line);
		else
			snprintf(entry->text, sizeof(entry->text), "%s", base(entry->file));
		id = nentries + 1;
		pldk__recorder_new_site(id, entry->line, entry->file, entry->func);
		pldk__store_release(&nentries, id);
	}
	pldk__store_relaxed(&site->id, id);
	pldk__registry_unlock();
	return id;
}

/**
 * pldk__site_text() - "train.c:42" for sentences
 * @id: site number
 *
 * Return: text that lives for ever; "?" for a number that says nothing.
 */
const char *pldk__site_text(uint32_t id)
{
	if (!id || id > pldk__load_acquire(&nentries))
		return "?";
	return entries[id - 1].text;
}

/**
 * pldk__site_replay() - tell a new recorder all sites that there are
 */
void pldk__site_replay(struct pldk__recorder_slab *slab)
{
	uint32_t i;

	for (i = 0; i < nentries; i++)
		pldk__recorder_put_site(slab, i + 1, entries[i].line, entries[i].file, entries[i].func);
}

static struct address *address_new(void *address)
{
	struct address *new = calloc(1, sizeof(*new));
	char text[44];
	Dl_info info;

	if (!new)
		return NULL;
	new->address = address;
	if (dladdr(address, &info) && info.dli_fname) {
		snprintf(text, sizeof(text), "%.28s+0x%zx", base(info.dli_fname),
			 (size_t)((char *)address - (char *)info.dli_fbase));
		new->site.func = info.dli_sname;
	} else {
		snprintf(text, sizeof(text), "%p", address);
	}
	new->site.file = strdup(text);
	return new;
}

/**
 * pldk__site_of() - the site of a caller that came without a macro
 * @return_address: of the public function
 *
 * Return: a site that lives for ever; one that says nothing when there are too many.
 */
struct pldk_site *pldk__site_of(void *return_address)
{
	size_t slot = ((uintptr_t)return_address * UINT64_C(0x9e3779b97f4a7c15)) >> 54;
	struct address *known;
	size_t i;

	for (i = 0; i < ADDRESSES; i++, slot = (slot + 1) & (ADDRESSES - 1)) {
		known = pldk__load_acquire(&addresses[slot]);
		if (pldk__likely(known && known->address == return_address))
			return &known->site;
		if (known)
			continue;
		pldk__registry_lock();
		known = addresses[slot];
		if (!known) {
			int saved = errno;

			known = address_new(return_address);
			errno = saved;
			pldk__store_release(&addresses[slot], known);
		}
		pldk__registry_unlock();
		if (!known)
			return &no_site;
		if (known->address == return_address)
			return &known->site;
	}
	return &no_site;
}
