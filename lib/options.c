// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Structs of options grow: a program and the library that it runs with may know different numbers of fields.
 *
 * Every struct begins with its size as the program knows it. A shorter one, down to that of the first release, gets the
 * defaults of what it lacks; a longer one may not ask for anything that this library does not know.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>

/**
 * pldk__options_take() - the user's options as a struct of this library
 * @out: holds the defaults, PLDK_X_OPTIONS_INIT; overwritten as far as the user's struct goes
 * @known: sizeof(*out)
 * @shortest: size in the first release
 * @user: begins with a size_t
 *
 * Return: 0, -EINVAL (no such size), -E2BIG (a byte behind @known is set). The sentence needs a prefix.
 */
int pldk__options_take(void *out, size_t known, size_t shortest, const void *user)
{
	const unsigned char *bytes = user;
	size_t size;
	size_t i;

	memcpy(&size, user, sizeof(size));
	/* A size beyond a page is a struct that nobody initialised; it is not read through. */
	if (size < shortest || size > 4096)
		return pldk__fail(-EINVAL, "options: size is %zu, wanted is %zu: start from the _OPTIONS_INIT of the struct",
				  size, known);
	for (i = known; i < size; i++) {
		if (bytes[i])
			return pldk__fail(-E2BIG, "options: byte %zu of %zu is set, but this library knows %zu: it is older than the program",
					  i, size, known);
	}
	memcpy(out, user, size < known ? size : known);
	return 0;
}
