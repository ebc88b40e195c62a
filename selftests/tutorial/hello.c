// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The first program: every rank says hello, and together they add up their numbers. Run: pldrun -n 4 hello */
#include <pldk.h>
#include <stdio.h>

int main(void)
{
	struct pldk_domain *world;
	int32_t sum;

	if (pldk_init(&world) < 0)
		goto err;
	sum = pldk_rank(world);
	if (pldk_allreduce(world, PLDK_IN_PLACE, &sum, 1, PLDK_INT32, PLDK_SUM, PLDK_MODE_AUTO, PLDK_SEC(10)) < 0)
		goto err;
	printf("hello from rank %d of %d; our numbers add up to %d\n", pldk_rank(world), pldk_size(world), sum);
	return pldk_finalize(world) < 0;

err:
	fprintf(stderr, "%s\n", pldk_last_error());
	return 1;
}
