/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Softmax regression in plain C: the mathematics of train_digits.c, and the same training on one processor.
 *
 * Nothing here knows pldk. The parallel program calls the pieces (gradient, coast, step, predict) on its share of the
 * images; softmax_train() runs the whole training alone, and is what the parallel result is compared with.
 */
#ifndef _SERIAL_SOFTMAX_H
#define _SERIAL_SOFTMAX_H

#define SOFTMAX_FEATURES 65 /* 64 pixels and a constant 1, whose weights are the biases */
#define SOFTMAX_CLASSES 10
#define SOFTMAX_WEIGHTS (SOFTMAX_FEATURES * SOFTMAX_CLASSES)

#define SOFTMAX_EPOCHS 40
#define SOFTMAX_BATCH 160

/**
 * struct softmax - a classifier and the state of its training
 * @weights: row of SOFTMAX_CLASSES for each feature
 * @velocity: running mean of the steps taken (momentum)
 */
struct softmax {
	float weights[SOFTMAX_WEIGHTS];
	float velocity[SOFTMAX_WEIGHTS];
};

/**
 * softmax_init() - small random weights, the same at each call
 * @model: filled
 */
void softmax_init(struct softmax *model);

/**
 * softmax_gradient() - what one image asks of the weights
 * @model: unchanged
 * @image: SOFTMAX_FEATURES values
 * @label: its class
 * @gradient: SOFTMAX_WEIGHTS sums, added to
 *
 * Return: the image's loss (cross entropy).
 */
float softmax_gradient(const struct softmax *model, const float *image, int label, float *gradient);

/**
 * softmax_coast() - the part of a step that needs no gradient: momentum and weight decay
 * @model: its velocity is changed
 */
void softmax_coast(struct softmax *model);

/**
 * softmax_step() - the rest of it: push the velocity against a gradient, and move the weights
 * @model: changed
 * @gradient: sum over @nimages images
 * @nimages: how many
 */
void softmax_step(struct softmax *model, const float *gradient, int nimages);

/**
 * softmax_predict() - which class does the image belong to?
 * @model: unchanged
 * @image: SOFTMAX_FEATURES values
 *
 * Return: 0..SOFTMAX_CLASSES-1.
 */
int softmax_predict(const struct softmax *model, const float *image);

/**
 * softmax_train() - the whole training on one processor
 * @model: from softmax_init()
 * @images: @nimages rows of SOFTMAX_FEATURES
 * @labels: their classes
 * @nimages: how many
 */
void softmax_train(struct softmax *model, const float (*images)[SOFTMAX_FEATURES], const int *labels, int nimages);

#endif /* _SERIAL_SOFTMAX_H */
