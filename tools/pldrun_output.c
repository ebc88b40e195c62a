// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Lines of many ranks on one output.
 *
 * A stream collects a rank's bytes until a line is whole; only whole lines enter a sink, each with its prefix, so lines
 * never mix. Any byte may stand in a line. A line longer than LINE_MAX_BYTES is cut into several. Nothing here blocks:
 * when the reader of pldrun's output is slow, the queue fills, and then the job loop stops reading the ranks' pipes.
 */
#include "pldrun.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES 16384
#define LINE_MAX_BYTES (1u << 20)
#define QUEUE_FULL_BYTES (256u << 10)
#define WRITE_BYTES 4096 /* what a pipe that polls writable takes without blocking (PIPE_BUF) */

/* Make room for len more bytes behind used. Without memory the tool cannot go on. */
static void grow(char **buffer, size_t *room, size_t used, size_t len)
{
	static const char no_memory[] = "pldrun: no memory for output\n";
	size_t want = *room ? *room : READ_BYTES;
	char *larger;

	if (used + len <= *room)
		return;
	while (want < used + len)
		want *= 2;
	larger = realloc(*buffer, want);
	if (!larger) {
		ssize_t ignored = write(STDERR_FILENO, no_memory, sizeof(no_memory) - 1);

		(void)ignored;
		_exit(PLDRUN_FAILED); /* the ranks die with their parent */
	}
	*buffer = larger;
	*room = want;
}

void pldrun_sink_put(struct pldrun_sink *sink, const char *bytes, size_t len)
{
	if (sink->is_broken)
		return;
	if (sink->head == sink->tail)
		sink->head = sink->tail = 0;
	if (sink->tail + len > sink->room && sink->head) {
		memmove(sink->queue, sink->queue + sink->head, sink->tail - sink->head);
		sink->tail -= sink->head;
		sink->head = 0;
	}
	grow(&sink->queue, &sink->room, sink->tail, len);
	memcpy(sink->queue + sink->tail, bytes, len);
	sink->tail += len;
}

void pldrun_sink_say(struct pldrun_sink *sink, const char *format, ...)
{
	char line[2048] = "pldrun: ";
	size_t used = strlen(line);
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line + used, sizeof(line) - used - 1, format, args);
	va_end(args);
	if (len < 0)
		return;
	used = strlen(line);
	line[used] = '\n';
	pldrun_sink_put(sink, line, used + 1);
}

bool pldrun_sink_is_full(const struct pldrun_sink *sink)
{
	return sink->tail - sink->head > QUEUE_FULL_BYTES;
}

bool pldrun_sink_write(struct pldrun_sink *sink)
{
	while (sink->head < sink->tail && !sink->is_broken) {
		struct pollfd writable = { .fd = sink->fd, .events = POLLOUT };
		size_t len = sink->tail - sink->head;
		ssize_t written;

		if (poll(&writable, 1, 0) == 0)
			return false;
		written = write(sink->fd, sink->queue + sink->head, len < WRITE_BYTES ? len : WRITE_BYTES);
		if (written >= 0)
			sink->head += (size_t)written;
		else if (errno == EAGAIN)
			return false;
		else if (errno != EINTR)
			sink->is_broken = true;
	}
	if (sink->is_broken)
		sink->head = sink->tail = 0;
	return true;
}

/* One whole line, without its newline. */
static void put_line(struct pldrun_stream *stream, const char *line, size_t len)
{
	char prefix[16];
	int prefix_len = snprintf(prefix, sizeof(prefix), "[%d] ", stream->rank);

	pldrun_sink_put(stream->sink, prefix, (size_t)prefix_len);
	pldrun_sink_put(stream->sink, line, len);
	pldrun_sink_put(stream->sink, "\n", 1);
}

bool pldrun_stream_read(struct pldrun_stream *stream)
{
	char *start, *newline;
	ssize_t got;
	size_t fresh;

	grow(&stream->line, &stream->room, stream->len, READ_BYTES);
	do
		got = read(stream->fd, stream->line + stream->len, READ_BYTES);
	while (got < 0 && errno == EINTR);
	if (got < 0 && errno == EAGAIN)
		return true;
	if (got <= 0)
		return false;

	fresh = stream->len; /* what was there before has no newline */
	stream->len += (size_t)got;
	start = stream->line;
	while ((newline = memchr(stream->line + fresh, '\n', stream->len - fresh))) {
		put_line(stream, start, (size_t)(newline - start));
		start = newline + 1;
		fresh = (size_t)(start - stream->line);
	}
	stream->len -= (size_t)(start - stream->line);
	memmove(stream->line, start, stream->len);
	if (stream->len >= LINE_MAX_BYTES) {
		put_line(stream, stream->line, stream->len);
		stream->len = 0;
	}
	return true;
}

void pldrun_stream_close(struct pldrun_stream *stream)
{
	if (stream->len)
		put_line(stream, stream->line, stream->len);
	if (stream->fd >= 0)
		close(stream->fd);
	free(stream->line);
	stream->line = NULL;
	stream->len = stream->room = 0;
	stream->fd = -1;
}
