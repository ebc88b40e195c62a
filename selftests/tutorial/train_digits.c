// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Data-parallel training on real data: a softmax classifier learns to read handwritten digits.
 *
 * Every rank has all weights and works on its share of each minibatch. Three collectives do the rest:
 *
 *   broadcast   rank 0's first weights to all, so that everybody starts from the same point;
 *   allreduce   the sum of the ranks' gradients to all, so that everybody takes the same step;
 *   allgather   each rank's predictions to all, so that everybody knows the accuracy.
 *
 * The allreduce is started, and waited for when the part of the step is done that needs no gradient.
 *
 * At the end rank 0 trains once more alone, in plain C (serial_softmax.c), and compares all weights.
 *
 * Run: pldrun -n 4 train_digits [digits.csv.gz]
 */
#include "common.h"
#include "digits.h"

#include <math.h>
#include <unistd.h>

#define REPORT_EVERY 4 /* epochs */

/* Train one epoch together. Returns the mean loss of an image, the same on every rank. */
static double train_epoch(struct pldk_domain *world, struct softmax *model, const struct digits *train)
{
	double loss = 0;

	for (int first = 0; first < train->count; first += SOFTMAX_BATCH) {
		int end = first + SOFTMAX_BATCH < train->count ? first + SOFTMAX_BATCH : train->count;
		float sums[SOFTMAX_WEIGHTS + 1] = { 0 }; /* gradient; the loss rides along at the end */
		struct pldk_handle *summed;

		/* Image by image in turn, so that any number of ranks shares any number of images. */
		for (int i = first + pldk_rank(world); i < end; i += pldk_size(world))
			sums[SOFTMAX_WEIGHTS] += softmax_gradient(model, train->images[i], train->labels[i], sums);
		must(pldk_allreduce_start(world, PLDK_IN_PLACE, sums, SOFTMAX_WEIGHTS + 1, PLDK_FP32, PLDK_SUM,
					  PLDK_MODE_AUTO, NULL, &summed));
		softmax_coast(model);
		must(pldk_handle_wait(summed, PLDK_TIMEOUT_DEFAULT));
		softmax_step(model, sums, end - first);
		loss += sums[SOFTMAX_WEIGHTS];
	}
	return loss / train->count;
}

static int *new_predictions(int n)
{
	int *predictions = calloc((size_t)n, sizeof(*predictions));

	if (!predictions) {
		fprintf(stderr, "no memory for %d predictions\n", n);
		exit(1);
	}
	return predictions;
}

static double accuracy_of(const int *predictions, const struct digits *test)
{
	int right = 0;

	for (int i = 0; i < test->count; i++)
		right += predictions[i] == test->labels[i];
	return (double)right / test->count;
}

/* Predict the test images together: each rank a block, the blocks gathered on all. */
static double test_together(struct pldk_domain *world, const struct softmax *model, const struct digits *test)
{
	int block = (test->count + pldk_size(world) - 1) / pldk_size(world);
	int *predictions = new_predictions(block * pldk_size(world));
	int first = block * pldk_rank(world);
	double accuracy;

	for (int i = first; i < first + block && i < test->count; i++)
		predictions[i] = softmax_predict(model, test->images[i]);
	must(pldk_allgather(world, PLDK_IN_PLACE, predictions, (size_t)block, PLDK_INT32, PLDK_TIMEOUT_DEFAULT));
	accuracy = accuracy_of(predictions, test);
	free(predictions);
	return accuracy;
}

/* The reference: the same training by one processor, without pldk. Returns the largest difference of a weight. */
static double compare_with_serial(const struct softmax *model, const struct digits *train, const struct digits *test,
				  double *serial_accuracy)
{
	int *predictions = new_predictions(test->count);
	struct softmax serial;
	double most = 0;

	softmax_init(&serial);
	softmax_train(&serial, (const float(*)[SOFTMAX_FEATURES])train->images, train->labels, train->count);
	for (int i = 0; i < test->count; i++)
		predictions[i] = softmax_predict(&serial, test->images[i]);
	*serial_accuracy = accuracy_of(predictions, test);
	free(predictions);
	for (int w = 0; w < SOFTMAX_WEIGHTS; w++)
		most = fmax(most, fabs((double)model->weights[w] - (double)serial.weights[w]));
	return most;
}

int main(int argc, char **argv)
{
	double accuracy = 0, serial_accuracy, difference, seconds;
	struct digits train, test;
	struct softmax model = { 0 };
	struct pldk_domain *world;
	int is_terminal = isatty(STDOUT_FILENO), is_wrong = 0;

	if (digits_load(digits_path(argc > 1 ? argv[1] : NULL), &train, &test))
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	must(pldk_init(&world));
	if (pldk_rank(world) == 0) {
		printf("training on %d images with %d ranks, testing on %d others\n", train.count, pldk_size(world),
		       test.count);
		softmax_init(&model);
	}

	seconds = -seconds_now();
	must(pldk_broadcast(world, model.weights, SOFTMAX_WEIGHTS, PLDK_FP32, 0, PLDK_TIMEOUT_DEFAULT));
	for (int epoch = 1; epoch <= SOFTMAX_EPOCHS; epoch++) {
		double loss = train_epoch(world, &model, &train);

		if (epoch % REPORT_EVERY && epoch < SOFTMAX_EPOCHS)
			continue;
		accuracy = test_together(world, &model, &test);
		if (pldk_rank(world) == 0) {
			printf("%sepoch %2d/%d  loss %.4f  accuracy %.4f%s", is_terminal ? "\r" : "", epoch,
			       SOFTMAX_EPOCHS, loss, accuracy, is_terminal && epoch < SOFTMAX_EPOCHS ? "" : "\n");
			fflush(stdout);
		}
	}
	seconds += seconds_now();

	if (pldk_rank(world) == 0) {
		difference = compare_with_serial(&model, &train, &test, &serial_accuracy);
		printf("RESULT train_digits ranks=%d provider=%s accuracy=%.4f serial_accuracy=%.4f", pldk_size(world),
		       pldk_provider(world), accuracy, serial_accuracy);
		printf(" max_abs_diff=%.3g seconds=%.3f\n", difference, seconds);
		is_wrong = !(accuracy >= 0.94 && difference <= 1e-4);
		if (is_wrong)
			fprintf(stderr,
				"wrong: expected an accuracy of at least 0.94 and a difference of at most 1e-4\n");
	}
	must(pldk_finalize(world));
	digits_free(&train);
	digits_free(&test);
	return is_wrong;
}
