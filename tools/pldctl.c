// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * pldctl - look at the worlds of this machine from outside.
 *
 * One command so far: ps. It reads what the kernel and the world files say, stops nobody and changes nothing.
 */
#include "pldctl.h"

#include "options.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USAGE_ERROR 2

static const struct option_row ps_rows[] = {
	{ 'j', "json", NULL, "one JSON document instead of tables" },
	{ 'h', "help", NULL, "this text" },
};

#define NPS_ROWS (sizeof(ps_rows) / sizeof(ps_rows[0]))

static void ps_help(void)
{
	printf("usage: pldctl ps [OPTION...]\n"
	       "Lists domains, their ranks, windows and sleeping waiters, on both providers.\n\n");
	options_help(stdout, ps_rows, NPS_ROWS);
	printf("\nWorlds of other users are for root only. JSON: {\"domains\": [...], \"hidden_processes\": N};\n"
	       "a key whose value is not known is null.\n");
}

static int take_ps_option(int key, const char *value, void *context)
{
	(void)value;
	if (key == 'h') {
		ps_help();
		exit(0);
	}
	*(bool *)context = true;
	return 0;
}

static int ps(int argc, char **argv)
{
	struct world_list list = { 0 };
	bool is_json = false;
	unsigned int hidden;
	int first = options_parse("pldctl ps", ps_rows, NPS_ROWS, argc, argv, take_ps_option, &is_json), ret;

	if (first < 0)
		return USAGE_ERROR;
	if (first < argc) {
		fprintf(stderr, "pldctl ps: unknown argument '%s'; see pldctl ps --help\n", argv[first]);
		return USAGE_ERROR;
	}
	ret = pldctl_scan(&list, &hidden);
	if (ret == 0 && is_json)
		ret = pldctl_ps_json(&list, hidden);
	else if (ret == 0)
		pldctl_ps_text(&list, hidden);
	world_free(&list);
	if (ret < 0)
		fprintf(stderr, "pldctl ps: %s\n", strerror(-ret));
	return ret < 0;
}

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ "ps", ps, "list domains, ranks, windows and waiters" },
};

#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "pldctl: which command? see pldctl --help\n");
		return USAGE_ERROR;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		printf("usage: pldctl COMMAND [OPTION...]\n\n");
		for (size_t c = 0; c < NCOMMANDS; c++)
			printf("  %-8s %s\n", commands[c].name, commands[c].help);
		printf("\npldctl COMMAND --help tells more.\n"
		       "Exit code: 0, 1 if the command failed, 2 for a wrong command line.\n");
		return 0;
	}
	for (size_t c = 0; c < NCOMMANDS; c++)
		if (strcmp(argv[1], commands[c].name) == 0)
			return commands[c].run(argc - 1, argv + 1);
	fprintf(stderr, "pldctl: unknown command '%s'; see pldctl --help\n", argv[1]);
	return USAGE_ERROR;
}
