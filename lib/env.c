// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The environment options. What there is stands in env.def, and only there; this file reads and checks it.
 *
 * The environment is read again by each join, so that a test or a launcher may change it between two worlds. A value
 * that is wrong is an error of pldk_init() and pldk_world_create(), never a guess.
 */
#include "internal.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Never changed and never freed once they are published: pldk__env() takes no lock. One for each change at a join. */
struct snapshot {
	struct pldk__env env;
	const struct snapshot *older;
};

static const struct snapshot defaults = {
	.env = {
#define PLDK_ENV(field, name, type, def, help) .field = def,
#include "env.def"
#undef PLDK_ENV
	},
};

static const struct snapshot *newest = &defaults;

static int parse_int64(const char *text, int64_t *out)
{
	char *end;
	long long value;
	int saved = errno;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || end == text || *end) {
		errno = saved;
		return -EINVAL;
	}
	errno = saved;
	*out = value;
	return 0;
}

static int parse_STR(const char *name, const char *text, const char **out)
{
	(void)name;
	*out = text;
	return 0;
}

static int parse_INT(const char *name, const char *text, int *out)
{
	int64_t value;

	if (parse_int64(text, &value) || value < -1 || value > INT_MAX)
		return pldk__fail(-EINVAL, "%s=%s: allowed is a whole number from -1 to %d", name, text, INT_MAX);
	*out = (int)value;
	return 0;
}

static int parse_MS(const char *name, const char *text, int64_t *out)
{
	int64_t value;

	if (parse_int64(text, &value) || value < -1 || value > INT64_MAX / 1000000)
		return pldk__fail(-EINVAL, "%s=%s: allowed is a whole number of milliseconds, or -1 for ever", name, text);
	*out = value;
	return 0;
}

static int parse_BOOL(const char *name, const char *text, int *out)
{
	if (strcmp(text, "0") && strcmp(text, "1"))
		return pldk__fail(-EINVAL, "%s=%s: allowed is 0 or 1", name, text);
	*out = text[0] == '1';
	return 0;
}

static int check_word(const char *name, const char *value, const char *const *words)
{
	struct pldk__text allowed = { 0 };
	size_t i;

	if (!value)
		return 0;
	for (i = 0; words[i]; i++) {
		if (!strcmp(value, words[i]))
			return 0;
		pldk__text_add(&allowed, "%s%s", i ? ", " : "", words[i]);
	}
	return pldk__fail(-EINVAL, "%s=%s: allowed is one of %s", name, value, allowed.text);
}

static int check_values(const struct pldk__env *env)
{
	static const char *const providers[] = { "dev", "shm", NULL };
	static const char *const policies[] = { "error", "report", "off", NULL };
	static const char *const levels[] = { "error", "warn", "info", "debug", NULL };
	int ret;

	ret = check_word("PLDK_PROVIDER", env->provider, providers);
	if (!ret)
		ret = check_word("PLDK_DEADLOCK", env->deadlock, policies);
	if (!ret)
		ret = check_word("PLDK_LOG", env->log, levels);
	if (ret)
		return ret;
	if (env->ring && (env->ring < 64 || env->ring > (int)PLDK__RING_MAX || env->ring & (env->ring - 1)))
		return pldk__fail(-EINVAL, "PLDK_RING=%d: allowed is 0 (off) or a power of two from 64 to %u", env->ring,
				  PLDK__RING_MAX);
	if (env->tag && strlen(env->tag) >= PLDK__TAG_MAX)
		return pldk__fail(-EINVAL, "PLDK_TAG has %zu bytes: allowed are %u", strlen(env->tag), PLDK__TAG_MAX - 1);
	if (env->check && strcmp(env->check, "0"))
		return pldk__fail(-EOPNOTSUPP,
				  "PLDK_CHECK=%s: checked mode is not in this build; unset it or set it to 0", env->check);
	return 0;
}

static int read_all(struct pldk__env *env)
{
	const char *text;
	int first = 0;
	int ret;

	/* A value that does not parse leaves the default; an empty one counts as unset. */
#define PLDK_ENV(field, name, type, def, help)                                                                         \
	env->field = def;                                                                                              \
	text = getenv(name);                                                                                           \
	if (text && *text) {                                                                                           \
		ret = parse_##type(name, text, &env->field);                                                           \
		if (ret && !first)                                                                                     \
			first = ret;                                                                                   \
	}
#include "env.def"
#undef PLDK_ENV
	return first;
}

/* Read and check. All fields are written, also on failure. Strings point into the environment. */
static int read_and_check(struct pldk__env *env)
{
	int ret = read_all(env);

	if (!ret)
		ret = check_values(env);
	if (ret) {
		/*
		 * It is published all the same: pldk_init() tells the others by its fd and rank. Domains that are
		 * joined already go on to read it: what they would take for something else must be right.
		 */
		if (env->ring < 0 || env->ring & (env->ring - 1) || env->ring > (int)PLDK__RING_MAX)
			env->ring = PLDK__RING_MAX;
		if (strcmp(env->deadlock, "report") && strcmp(env->deadlock, "off"))
			env->deadlock = "error";
	}
	return ret;
}

/**
 * pldk__env_refresh() - read the environment into what pldk__env() gives
 *
 * Context: at a join; the registry lock serialises joins. Strings that others look at meanwhile stay in the
 * environment, which a program does not change while other threads run.
 *
 * Return: 0; -EINVAL: the sentence has variable, value and what is allowed; -EOPNOTSUPP: PLDK_CHECK; -ENOMEM.
 */
int pldk__env_refresh(void)
{
	struct snapshot *snapshot = calloc(1, sizeof(*snapshot));
	int ret;

	if (!snapshot)
		return pldk__fail(-ENOMEM, "no memory for the environment options");
	ret = read_and_check(&snapshot->env);
	pldk__registry_lock();
	if (memcmp(&newest->env, &snapshot->env, sizeof(snapshot->env))) {
		snapshot->older = newest;
		pldk__store_release(&newest, snapshot);
		snapshot = NULL;
	}
	pldk__registry_unlock();
	free(snapshot);
	return ret;
}

/**
 * pldk__env() - the environment as the newest join found it
 */
const struct pldk__env *pldk__env(void)
{
	return &pldk__load_acquire(&newest)->env;
}
