// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Command-line options of the tools; see options.h. getopt_long() does the work, fed from the table. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 32
#define SECONDS_MAX 1e9

int options_parse(const char *program, const struct option_row *rows, size_t nrows, int argc, char **argv,
		  int (*take)(int key, const char *value, void *context), void *context)
{
	struct option longs[ROWS_MAX + 1] = { 0 };
	char shorts[2 * ROWS_MAX + 3] = "+:"; /* stop at the first other word; tell a missing argument apart */
	size_t n = 2;
	int key;

	for (size_t i = 0; i < nrows && i < ROWS_MAX; i++) {
		longs[i].name = rows[i].name;
		longs[i].has_arg = rows[i].argument ? required_argument : no_argument;
		longs[i].val = rows[i].key;
		if (rows[i].key > 255)
			continue;
		shorts[n++] = (char)rows[i].key;
		if (rows[i].argument)
			shorts[n++] = ':';
	}
	shorts[n] = '\0';

	opterr = 0;
	optind = 1;
	while ((key = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		if (key == '?' || key == ':') {
			const char *word = argv[optind - 1];

			if (key == ':')
				return options_usage(program, "option '%s' needs an argument", word);
			if (optopt && optopt < 256 && strncmp(word, "--", 2) != 0)
				return options_usage(program, "unknown option '-%c'", optopt);
			return options_usage(program, "unknown option '%s'", word);
		}
		if (take(key, optarg, context))
			return -1;
	}
	return optind;
}

int options_usage(const char *program, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "; see %s --help\n", program);
	return -1;
}

int options_flush(const char *program)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	fprintf(stderr, "%s: cannot write to stdout: %s\n", program, strerror(errno));
	return -1;
}

void options_help(FILE *out, const struct option_row *rows, size_t nrows)
{
	char left[64];

	for (size_t i = 0; i < nrows; i++) {
		char letter[] = "-x, ";

		letter[1] = (char)rows[i].key;
		snprintf(left, sizeof(left), "  %s--%s%s%s", rows[i].key > 255 ? "    " : letter, rows[i].name,
			 rows[i].argument ? " " : "", rows[i].argument ? rows[i].argument : "");
		fprintf(out, "%-28s %s\n", left, rows[i].help);
	}
}

int options_number(const char *text, long least, long most, long *value)
{
	char *end;
	long number;

	errno = 0;
	number = strtol(text, &end, 10);
	if (errno || end == text || *end || number < least || number > most)
		return -1;
	*value = number;
	return 0;
}

int options_seconds(const char *text, long long *ns)
{
	char *end;
	double number = strtod(text, &end);

	if (end == text || *end || !isfinite(number) || number <= 0 || number > SECONDS_MAX)
		return -1;
	*ns = (long long)(number * 1e9);
	return 0;
}

int options_provider(const char *program, const char *text, const char **provider)
{
	if (strcmp(text, "dev") != 0 && strcmp(text, "shm") != 0)
		return options_usage(program, "--provider is dev or shm, not '%s'", text);
	*provider = text;
	return 0;
}
