/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * pldctl's parts: pldctl.c (commands), pldctl_scan.c (finding worlds), pldctl_ps.c (the list as text and as JSON),
 * pldctl_caps.c (which collectives there are).
 */
#ifndef _PLDCTL_H
#define _PLDCTL_H

#include "world.h"

#include <stdbool.h>

/**
 * struct pldctl_ps_options - what the command line said
 * @has_all: show domains that nobody uses and the library's own windows, too
 * @is_json: for programs
 */
struct pldctl_ps_options {
	bool has_all;
	bool is_json;
};

/**
 * pldctl_scan() - find every domain on this machine that this user may see
 * @list: filled
 * @hidden: out: processes whose descriptors may not be read
 *
 * Looks through the descriptors of all processes for files of /dev/pld and for world files of the embedded provider.
 * Return: 0 or a negative errno.
 */
int pldctl_scan(struct world_list *list, unsigned int *hidden);

/** pldctl_ps_text() - print the list for people */
void pldctl_ps_text(const struct world_list *list, const struct pldctl_ps_options *options, unsigned int hidden);

/** pldctl_ps_json() - print the list as one JSON document. Return: 0 or a negative errno */
int pldctl_ps_json(const struct world_list *list, const struct pldctl_ps_options *options, unsigned int hidden);

/** pldctl_caps() - print which collectives there are */
void pldctl_caps(void);

#endif /* _PLDCTL_H */
