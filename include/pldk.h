/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* pldk - processes of one machine compute together. This is the header to include; see pldk(7). */
#ifndef _PLDK_H
#define _PLDK_H

#include <pldk/coll.h>
#include <pldk/coll_on.h>
#include <pldk/coll_start.h>
#include <pldk/diag.h>
#include <pldk/domain.h>
#include <pldk/rma.h>
#include <pldk/signal.h>
#include <pldk/types.h>
#include <pldk/version.h>
#include <pldk/window.h>

#endif /* _PLDK_H */
