// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Errors and log: the sentence of the calling thread's last failure, the one meaning of each errno, the log callback.
 *
 * The first function that knows a cause calls pldk__fail(); callers hand the number on and stay silent, or put context
 * in front of it. The library itself prints nothing: what a callback does with a line is its user's business.
 */
#include "internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <pldk/version.h>

#define SENTENCE_MAX 1024

static __thread char sentence[SENTENCE_MAX];
/*
 * A literal that is the sentence instead. In the static block of thread-local memory: where the library was loaded by
 * dlopen(3), a thread's first look at the other words may allocate, and a handler of POSIX signals must not.
 */
static __thread const char *literal __attribute__((tls_model("initial-exec")));
static __thread bool is_quiet;

/* Where log lines go. The callback runs under the lock: when pldk_set_log() returns, the old one runs no more. */
static struct {
	pthread_mutex_t lock;
	pldk_log_fn fn;
	void *arg;
	int most; /* atomic: -1 for nobody */
} sink = { PTHREAD_MUTEX_INITIALIZER, NULL, NULL, -1 };

static void log_line(enum pldk_log_level level, const char *line)
{
	pthread_mutex_lock(&sink.lock);
	if (sink.fn && (int)level <= sink.most)
		sink.fn(level, line, sink.arg);
	pthread_mutex_unlock(&sink.lock);
}

bool pldk__log_on(enum pldk_log_level level)
{
	return (int)level <= pldk__load_relaxed(&sink.most);
}

void pldk__log(enum pldk_log_level level, const char *fmt, ...)
{
	char line[SENTENCE_MAX];
	int saved = errno;
	va_list ap;

	if (!pldk__log_on(level))
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	log_line(level, line);
	errno = saved;
}

/**
 * pldk_set_log() - where log lines go; see diag.h
 */
void pldk_set_log(pldk_log_fn fn, void *arg, enum pldk_log_level most)
{
	pthread_mutex_lock(&sink.lock);
	sink.fn = fn;
	sink.arg = arg;
	pldk__store_relaxed(&sink.most, fn ? (int)most : -1);
	pthread_mutex_unlock(&sink.lock);
}

static const char *const level_names[] = { "error", "warn", "info", "debug" };

static void log_to_stderr(enum pldk_log_level level, const char *line, void *arg)
{
	(void)arg;
	fprintf(stderr, "pldk: %s: %s\n", level_names[level], line);
}

/**
 * pldk__log_from_env() - install the stderr callback that PLDK_LOG asks for
 * @level: value of PLDK_LOG, already checked; NULL changes nothing
 *
 * The one place that leads to a print, and only because the user of the program asked for it. A callback that the
 * program set itself stays.
 */
void pldk__log_from_env(const char *level)
{
	size_t i;

	if (!level)
		return;
	for (i = 0; i < PLDK__ARRAY_SIZE(level_names); i++) {
		if (strcmp(level, level_names[i]))
			continue;
		pthread_mutex_lock(&sink.lock);
		if (!sink.fn || sink.fn == log_to_stderr) {
			sink.fn = log_to_stderr;
			pldk__store_relaxed(&sink.most, (int)i);
		}
		pthread_mutex_unlock(&sink.lock);
	}
}

static void log_failure(void)
{
	if (!is_quiet && pldk__log_on(PLDK_LOG_DEBUG))
		log_line(PLDK_LOG_DEBUG, sentence);
}

/* Behind "rank 2: ", if a sentence begins like that. */
static const char *behind_who(const char *text)
{
	const char *s = text;

	if (strncmp(s, "rank ", 5) || s[5] < '0' || s[5] > '9')
		return text;
	for (s += 5; *s >= '0' && *s <= '9'; s++)
		;
	return s[0] == ':' && s[1] == ' ' ? s + 2 : text;
}

/**
 * pldk__fail() - the calling thread's sentence
 * @err: negative errno
 * @fmt: who, what, expected, seen, what to do. May have the present sentence among its arguments. Who is put in front
 *       where it is missing and known: the thread's rank in its world
 *
 * Every failure is logged at debug level: whether it is an error of the program, only the program knows.
 *
 * Return: @err.
 */
int pldk__fail(int err, const char *fmt, ...)
{
	char text[SENTENCE_MAX];
	int saved = errno;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (strncmp(text, "rank ", 5) && pldk__self && pldk__self->inside)
		snprintf(sentence, sizeof(sentence), "rank %u: %.*s", pldk__self->world->rank, SENTENCE_MAX - 32, text);
	else
		memcpy(sentence, text, strlen(text) + 1);
	literal = NULL;
	log_failure();
	errno = saved;
	return err;
}

/**
 * pldk__fail_text() - as pldk__fail(), without formatting and without a log line
 * @err: negative errno
 * @text: literal
 *
 * For failures that are polled for, and for those in a POSIX signal handler: nothing here that is not
 * async-signal-safe.
 *
 * Return: @err.
 */
int pldk__fail_text(int err, const char *text)
{
	literal = text;
	return err;
}

/**
 * pldk__fail_prefix() - put context in front of the sentence that a callee has set
 * @err: negative errno, handed through
 * @fmt: the context, with its own colon and space
 *
 * Who stays in front, once.
 *
 * Return: @err.
 */
int pldk__fail_prefix(int err, const char *fmt, ...)
{
	const char *said = pldk_last_error();
	const char *rest = behind_who(said);
	char text[SENTENCE_MAX];
	int saved = errno;
	size_t len = 0;
	va_list ap;

	if (strncmp(fmt, "rank ", 5)) {
		len = (size_t)(rest - said);
		memcpy(text, said, len);
	}
	va_start(ap, fmt);
	vsnprintf(text + len, sizeof(text) - len, fmt, ap);
	va_end(ap);
	len = strlen(text);
	snprintf(text + len, sizeof(text) - len, "%s", rest);
	memcpy(sentence, text, strlen(text) + 1);
	literal = NULL;
	errno = saved;
	return err;
}

/**
 * pldk__fail_quiet() - failures of this thread are expected for a while: do not log them
 * @quiet: on or off
 */
void pldk__fail_quiet(bool quiet)
{
	is_quiet = quiet;
}

/**
 * pldk_last_error() - see diag.h
 */
const char *pldk_last_error(void)
{
	return literal ? literal : sentence;
}

/**
 * pldk_strerror() - see diag.h
 */
const char *pldk_strerror(int err)
{
	switch (err < 0 ? -(unsigned int)err : (unsigned int)err) {
	case 0:
		return "success";
#define PLDK_ERRNO(name, meaning)                                                                                      \
	case name:                                                                                                     \
		return meaning;
#include "errno.def"
#undef PLDK_ERRNO
	default:
		return "no errno of pldk";
	}
}

/**
 * pldk__errno_name() - "EPROTO" for EPROTO of either sign
 */
const char *pldk__errno_name(int err)
{
	switch (err < 0 ? -err : err) {
#define PLDK_ERRNO(name, meaning)                                                                                      \
	case name:                                                                                                     \
		return #name;
#include "errno.def"
#undef PLDK_ERRNO
	default:
		return "E?";
	}
}

/**
 * pldk__text_add() - append to a sentence under construction
 */
void pldk__text_add(struct pldk__text *text, const char *fmt, ...)
{
	size_t room = sizeof(text->text) - text->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text->text + text->len, room, fmt, ap);
	va_end(ap);
	if (n > 0)
		text->len += (size_t)n < room ? (size_t)n : room - 1;
}

/**
 * pldk_version() - see diag.h
 */
const char *pldk_version(void)
{
	return PLDK_VERSION;
}
