// SPDX-License-Identifier: GPL-2.0
/* The one place that makes the tracepoints of trace.h. */
#include "pld.h"

#define CREATE_TRACE_POINTS
#include "trace.h"
