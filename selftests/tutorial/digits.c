// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The UCI handwritten digits: reading and splitting; see digits.h. zlib unpacks, and reads plain text as well. */
#include "digits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#define PIXELS 64
#define IMAGES_MAX 100000

const char *digits_path(const char *argument)
{
	static char path[4096];
	const char *base;

	if (argument)
		return argument;
	base = getenv("PLDK_DIGITS");
	if (base && *base)
		return base;
	base = getenv("PLDK_CACHE");
	if (base && *base) {
		snprintf(path, sizeof(path), "%s/digits.csv.gz", base);
		return path;
	}
	base = getenv("XDG_CACHE_HOME");
	if (base && *base) {
		snprintf(path, sizeof(path), "%s/pldk/digits.csv.gz", base);
		return path;
	}
	base = getenv("HOME");
	snprintf(path, sizeof(path), "%s/.cache/pldk/digits.csv.gz", base && *base ? base : "/root");
	return path;
}

/* One line of 65 numbers into a row and a label. */
static int parse_line(const char *line, float *image, int *label)
{
	long value;
	char *end;

	for (int i = 0; i <= PIXELS; i++) {
		value = strtol(line, &end, 10);
		if (end == line || (*end != ',' && i < PIXELS) || value < 0 || value > (i < PIXELS ? 16 : 9))
			return -1;
		if (i < PIXELS)
			image[i] = (float)value / 16;
		else
			*label = (int)value;
		line = end + 1;
	}
	image[PIXELS] = 1;
	return *end == '\n' || *end == '\0' ? 0 : -1;
}

static int append(struct digits *set, const float *image, int label)
{
	/* Room grows at 0, 256, 512, ... images. */
	if (set->count % 256 == 0) {
		size_t room = (size_t)set->count + 256;
		float(*images)[SOFTMAX_FEATURES] = realloc(set->images, room * sizeof(*images));
		int *labels;

		if (!images)
			return -1;
		set->images = images;
		labels = realloc(set->labels, room * sizeof(*labels));
		if (!labels)
			return -1;
		set->labels = labels;
	}
	memcpy(set->images[set->count], image, sizeof(*set->images));
	set->labels[set->count++] = label;
	return 0;
}

int digits_load(const char *path, struct digits *train, struct digits *test)
{
	float image[SOFTMAX_FEATURES];
	char line[1024];
	int index, label;
	gzFile file;

	memset(train, 0, sizeof(*train));
	memset(test, 0, sizeof(*test));
	file = gzopen(path, "rb");
	if (!file) {
		fprintf(stderr, "cannot open %s: %s; tools/fetch-digits gets it\n", path, strerror(errno));
		return -1;
	}
	for (index = 0; index < IMAGES_MAX && gzgets(file, line, sizeof(line)); index++) {
		if (parse_line(line, image, &label)) {
			fprintf(stderr, "%s:%d: expected 64 pixels of 0..16 and a label of 0..9\n", path, index + 1);
			goto err;
		}
		if (append(index % 5 == 4 ? test : train, image, label)) {
			fprintf(stderr, "no memory for image %d of %s\n", index, path);
			goto err;
		}
	}
	if (!gzeof(file)) {
		fprintf(stderr, "%s is damaged or has more than %d images\n", path, IMAGES_MAX);
		goto err;
	}
	if (test->count == 0) {
		fprintf(stderr, "%s has %d images, too few for a test\n", path, index);
		goto err;
	}
	gzclose(file);
	return 0;

err:
	gzclose(file);
	digits_free(train);
	digits_free(test);
	return -1;
}

void digits_free(struct digits *set)
{
	free(set->images);
	free(set->labels);
	memset(set, 0, sizeof(*set));
}
