/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The UCI handwritten digits: 1,797 images of 8x8 pixels, read from digits.csv.gz (tools/fetch-digits gets it).
 * Every fifth image (index % 5 == 4) is kept for the test and never trained on.
 */
#ifndef _DIGITS_H
#define _DIGITS_H

#include "serial_softmax.h"

/**
 * struct digits - a set of images
 * @count: how many
 * @images: pixels scaled to 0..1 and a constant 1 at the end of each row
 * @labels: 0..9
 */
struct digits {
	int count;
	float (*images)[SOFTMAX_FEATURES];
	int *labels;
};

/**
 * digits_path() - where the data is
 * @argument: what the user said, or NULL
 *
 * Return: @argument, else $PLDK_DIGITS, else digits.csv.gz in the cache folder that tools/fetch-digits uses.
 * Static memory.
 */
const char *digits_path(const char *argument);

/**
 * digits_load() - read and split the set
 * @path: a gzip or plain CSV: 64 pixels 0..16 and a label a line
 * @train: out: images with index % 5 != 4
 * @test: out: the others
 *
 * Return: 0, or -1 after a sentence on stderr.
 */
int digits_load(const char *path, struct digits *train, struct digits *test);

/** digits_free() - give its memory back */
void digits_free(struct digits *set);

#endif /* _DIGITS_H */
