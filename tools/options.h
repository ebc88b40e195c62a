/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Command-line options of the tools. One table makes the parser and the help text, so that they cannot disagree.
 */
#ifndef _PLDK_TOOLS_OPTIONS_H
#define _PLDK_TOOLS_OPTIONS_H

#include <stddef.h>
#include <stdio.h>

/**
 * struct option_row - one option
 * @key: its letter, or a number above 255 if it has no short form
 * @name: long name
 * @argument: what the help calls its argument, or NULL if it takes none
 * @help: one line
 */
struct option_row {
	int key;
	const char *name;
	const char *argument;
	const char *help;
};

/**
 * options_parse() - read the options that stand before the first other word
 * @program: name for messages
 * @rows: table
 * @nrows: its length
 * @argc: of main()
 * @argv: of main()
 * @take: called for each option; returns 0, or -1 after having said what is wrong
 * @context: handed to @take
 *
 * Return: index of the first word that is no option, or -1 after one line on stderr.
 */
int options_parse(const char *program, const struct option_row *rows, size_t nrows, int argc, char **argv,
		  int (*take)(int key, const char *value, void *context), void *context);

/**
 * options_usage() - say what is wrong with the command line: one line on stderr that names --help
 * @program: name for the message
 * @format: as of printf(3)
 *
 * Return: -1.
 */
int options_usage(const char *program, const char *format, ...) __attribute__((format(printf, 2, 3)));

/**
 * options_flush() - write what stands in stdout's buffer
 * @program: name for the message
 *
 * Return: 0, or -1 after one line on stderr: not all that was printed has arrived.
 */
int options_flush(const char *program);

/**
 * options_help() - print the table
 * @out: where
 * @rows: table
 * @nrows: its length
 */
void options_help(FILE *out, const struct option_row *rows, size_t nrows);

/**
 * options_number() - a whole number and nothing else
 * @text: the number
 * @least: smallest that is right
 * @most: largest
 * @value: out
 *
 * Return: 0, or -1 (nothing was printed).
 */
int options_number(const char *text, long least, long most, long *value);

/**
 * options_seconds() - a duration above zero, fractions allowed
 * @text: the number
 * @ns: out: nanoseconds
 *
 * Return: 0, or -1 (nothing was printed).
 */
int options_seconds(const char *text, long long *ns);

/**
 * options_provider() - name of a provider
 * @program: name for the message
 * @text: the name
 * @provider: out: @text
 *
 * Return: 0, or -1 after one line on stderr.
 */
int options_provider(const char *program, const char *text, const char **provider);

#endif /* _PLDK_TOOLS_OPTIONS_H */
