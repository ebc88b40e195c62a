// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Softmax regression in plain C; see serial_softmax.h. Minibatches are taken in the order of the images, so that every
 * run, serial or parallel, sees the same sums up to the rounding of a different order of additions.
 */
#include "serial_softmax.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LEARNING_RATE 0.25f
#define MOMENTUM 0.9f
#define WEIGHT_DECAY 1e-4f

/* Scores of all classes, turned into probabilities. */
static void probabilities(const struct softmax *model, const float *image, float *out)
{
	float most = -INFINITY, sum = 0;

	memset(out, 0, SOFTMAX_CLASSES * sizeof(*out));
	for (int f = 0; f < SOFTMAX_FEATURES; f++) {
		const float *row = model->weights + f * SOFTMAX_CLASSES;

		if (image[f] == 0) /* half of all pixels */
			continue;
		for (int c = 0; c < SOFTMAX_CLASSES; c++)
			out[c] += image[f] * row[c];
	}
	for (int c = 0; c < SOFTMAX_CLASSES; c++)
		most = fmaxf(most, out[c]);
	for (int c = 0; c < SOFTMAX_CLASSES; c++)
		sum += out[c] = expf(out[c] - most);
	for (int c = 0; c < SOFTMAX_CLASSES; c++)
		out[c] /= sum;
}

void softmax_init(struct softmax *model)
{
	uint32_t state = 2026;

	memset(model, 0, sizeof(*model));
	for (int w = 0; w < SOFTMAX_WEIGHTS; w++) {
		state = state * 1664525u + 1013904223u; /* Numerical Recipes' generator */
		model->weights[w] = 0.02f * ((float)(state >> 8) / (float)(1u << 24) - 0.5f);
	}
}

float softmax_gradient(const struct softmax *model, const float *image, int label, float *gradient)
{
	float error[SOFTMAX_CLASSES], loss;

	probabilities(model, image, error);
	loss = -logf(fmaxf(error[label], 1e-30f));
	error[label] -= 1;
	for (int f = 0; f < SOFTMAX_FEATURES; f++) {
		if (image[f] == 0)
			continue;
		for (int c = 0; c < SOFTMAX_CLASSES; c++)
			gradient[f * SOFTMAX_CLASSES + c] += image[f] * error[c];
	}
	return loss;
}

void softmax_coast(struct softmax *model)
{
	for (int w = 0; w < SOFTMAX_WEIGHTS; w++)
		model->velocity[w] = MOMENTUM * model->velocity[w] - LEARNING_RATE * WEIGHT_DECAY * model->weights[w];
}

void softmax_step(struct softmax *model, const float *gradient, int nimages)
{
	for (int w = 0; w < SOFTMAX_WEIGHTS; w++) {
		model->velocity[w] -= LEARNING_RATE / (float)nimages * gradient[w];
		model->weights[w] += model->velocity[w];
	}
}

int softmax_predict(const struct softmax *model, const float *image)
{
	float p[SOFTMAX_CLASSES];
	int best = 0;

	probabilities(model, image, p);
	for (int c = 1; c < SOFTMAX_CLASSES; c++)
		if (p[c] > p[best])
			best = c;
	return best;
}

void softmax_train(struct softmax *model, const float (*images)[SOFTMAX_FEATURES], const int *labels, int nimages)
{
	for (int epoch = 0; epoch < SOFTMAX_EPOCHS; epoch++) {
		for (int first = 0; first < nimages; first += SOFTMAX_BATCH) {
			int end = first + SOFTMAX_BATCH < nimages ? first + SOFTMAX_BATCH : nimages;
			float gradient[SOFTMAX_WEIGHTS] = { 0 };

			for (int i = first; i < end; i++)
				softmax_gradient(model, images[i], labels[i], gradient);
			softmax_coast(model);
			softmax_step(model, gradient, end - first);
		}
	}
}
