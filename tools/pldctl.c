// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * pldctl - look at the worlds of this machine from outside: it stops nobody and changes nothing.
 */
#include "pldctl.h"

#include "options.h"

#include <pldk.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USAGE_ERROR 2

static const struct option_row ps_rows[] = {
	{ 'a', "all", NULL, "also worlds that nobody uses any more, and the library's own windows" },
	{ 'j', "json", NULL, "one JSON document instead of tables" },
	{ 'h', "help", NULL, "this text" },
};

#define NPS_ROWS (sizeof(ps_rows) / sizeof(ps_rows[0]))

static void ps_help(void)
{
	printf("usage: pldctl ps [OPTION...]\n"
	       "Lists domains, their ranks, windows and sleeping waiters, on both providers.\n"
	       "A world is in use while a rank of it is alive or waits.\n\n");
	options_help(stdout, ps_rows, NPS_ROWS);
	printf("\nWorlds of other users are for root only. JSON: {\"domains\": [...], \"unused_domains\": N,\n"
	       "\"hidden_processes\": N}; a key whose value is not known is null.\n");
}

static int take_ps_option(int key, const char *value, void *context)
{
	struct pldctl_ps_options *options = context;

	(void)value;
	if (key == 'h') {
		ps_help();
		exit(0);
	}
	if (key == 'a')
		options->has_all = true;
	else
		options->is_json = true;
	return 0;
}

static int ps(int argc, char **argv)
{
	struct world_list list = { 0 };
	struct pldctl_ps_options options = { 0 };
	unsigned int hidden;
	int first = options_parse("pldctl ps", ps_rows, NPS_ROWS, argc, argv, take_ps_option, &options), ret;

	if (first < 0)
		return USAGE_ERROR;
	if (first < argc) {
		options_usage("pldctl ps", "unknown argument '%s'", argv[first]);
		return USAGE_ERROR;
	}
	ret = pldctl_scan(&list, &hidden);
	if (ret == 0 && options.is_json)
		ret = pldctl_ps_json(&list, &options, hidden);
	else if (ret == 0)
		pldctl_ps_text(&list, &options, hidden);
	world_free(&list);
	if (ret < 0)
		fprintf(stderr, "pldctl ps: %s\n", strerror(-ret));
	return ret < 0 || options_flush("pldctl ps");
}

static const struct option_row caps_rows[] = {
	{ 'h', "help", NULL, "this text" },
};

static int take_caps_option(int key, const char *value, void *context)
{
	(void)key;
	(void)value;
	(void)context;
	printf("usage: pldctl caps\n"
	       "Lists the collectives that there are: operation, mode, element type, reductions. What an operation has no\n"
	       "use for is -.\n\n");
	options_help(stdout, caps_rows, 1);
	exit(0);
}

static int caps(int argc, char **argv)
{
	int first = options_parse("pldctl caps", caps_rows, 1, argc, argv, take_caps_option, NULL);

	if (first < 0)
		return USAGE_ERROR;
	if (first < argc) {
		options_usage("pldctl caps", "unknown argument '%s'", argv[first]);
		return USAGE_ERROR;
	}
	pldctl_caps();
	return options_flush("pldctl caps");
}

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ "ps", ps, "list domains, ranks, windows and waiters" },
	{ "caps", caps, "list the collectives that there are" },
};

/* What may stand in place of a command. */
static const struct option_row rows[] = {
	{ 'h', "help", NULL, "this text" },
	{ 256, "version", NULL, "the version" },
};

#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

int main(int argc, char **argv)
{
	if (argc < 2) {
		options_usage("pldctl", "a command is missing");
		return USAGE_ERROR;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		printf("usage: pldctl COMMAND [OPTION...]\n\n");
		for (size_t c = 0; c < NCOMMANDS; c++)
			printf("  %-26s %s\n", commands[c].name, commands[c].help);
		options_help(stdout, rows, sizeof(rows) / sizeof(rows[0]));
		printf("\npldctl COMMAND --help tells more.\n"
		       "Exit code: 0, 1 if the command failed, 2 for a wrong command line.\n");
		return 0;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("pldctl %s\n", pldk_version());
		return 0;
	}
	for (size_t c = 0; c < NCOMMANDS; c++)
		if (strcmp(argv[1], commands[c].name) == 0)
			return commands[c].run(argc - 1, argv + 1);
	options_usage("pldctl", "unknown command '%s'", argv[1]);
	return USAGE_ERROR;
}
