/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What the arguments of each public collective are as a struct pldk__coll_args: once for all its forms.
 */
#ifndef _PLDK_COLL_ARGS_H
#define _PLDK_COLL_ARGS_H

#include "coll.h"

static inline struct pldk__coll_args pldk__args_barrier(void)
{
	return (struct pldk__coll_args){
		.op = PLDK_EV_BARRIER,
	};
}

static inline struct pldk__coll_args pldk__args_allreduce(const void *input, void *output, size_t count,
							  enum pldk_dtype dtype, enum pldk_reduce_op op,
							  enum pldk_mode mode)
{
	return (struct pldk__coll_args){
		.op = PLDK_EV_ALLREDUCE,
		.dtype = (uint32_t)dtype,
		.reduce = (uint32_t)op,
		.mode = (uint32_t)mode,
		.count = count,
		.input = input,
		.output = output,
	};
}

static inline struct pldk__coll_args pldk__args_broadcast(void *buffer, size_t count, enum pldk_dtype dtype, int root)
{
	return (struct pldk__coll_args){
		.op = PLDK_EV_BROADCAST,
		.dtype = (uint32_t)dtype,
		.root = root,
		.count = count,
		.input = buffer,
		.output = buffer,
	};
}

static inline struct pldk__coll_args pldk__args_allgather(const void *input, void *output, size_t count,
							  enum pldk_dtype dtype)
{
	return (struct pldk__coll_args){
		.op = PLDK_EV_ALLGATHER,
		.dtype = (uint32_t)dtype,
		.count = count,
		.input = input,
		.output = output,
	};
}

static inline struct pldk__coll_args pldk__args_reduce_scatter(const void *input, void *output, size_t count,
							       enum pldk_dtype dtype, enum pldk_reduce_op op)
{
	return (struct pldk__coll_args){
		.op = PLDK_EV_REDUCE_SCATTER,
		.dtype = (uint32_t)dtype,
		.reduce = (uint32_t)op,
		.count = count,
		.input = input,
		.output = output,
	};
}

static inline struct pldk__coll_args pldk__args_all_to_all(const void *input, void *output, size_t count,
							   enum pldk_dtype dtype)
{
	return (struct pldk__coll_args){
		.op = PLDK_EV_ALL_TO_ALL,
		.dtype = (uint32_t)dtype,
		.count = count,
		.input = input,
		.output = output,
	};
}

static inline struct pldk__coll_args pldk__args_all_to_all_v(const void *input, void *output, size_t row_count,
							     const size_t *send_counts, const size_t *recv_counts,
							     enum pldk_dtype dtype)
{
	return (struct pldk__coll_args){
		.op = PLDK_EV_ALL_TO_ALL_V,
		.dtype = (uint32_t)dtype,
		.count = row_count,
		.input = input,
		.output = output,
		.send_counts = send_counts,
		.recv_counts = recv_counts,
	};
}

static inline struct pldk__coll_args pldk__args_reduce(const void *input, void *output, size_t count,
						       enum pldk_dtype dtype, enum pldk_reduce_op op, int root)
{
	return (struct pldk__coll_args){
		.op = PLDK_EV_REDUCE,
		.dtype = (uint32_t)dtype,
		.reduce = (uint32_t)op,
		.root = root,
		.count = count,
		.input = input,
		.output = output,
	};
}

static inline struct pldk__coll_args pldk__args_gather(const void *input, void *output, size_t count,
						       enum pldk_dtype dtype, int root)
{
	return (struct pldk__coll_args){
		.op = PLDK_EV_GATHER,
		.dtype = (uint32_t)dtype,
		.root = root,
		.count = count,
		.input = input,
		.output = output,
	};
}

static inline struct pldk__coll_args pldk__args_scatter(const void *input, void *output, size_t count,
							enum pldk_dtype dtype, int root)
{
	return (struct pldk__coll_args){
		.op = PLDK_EV_SCATTER,
		.dtype = (uint32_t)dtype,
		.root = root,
		.count = count,
		.input = input,
		.output = output,
	};
}

static inline struct pldk__coll_args pldk__args_scan(const void *input, void *output, size_t count,
						     enum pldk_dtype dtype, enum pldk_reduce_op op)
{
	return (struct pldk__coll_args){
		.op = PLDK_EV_SCAN,
		.dtype = (uint32_t)dtype,
		.reduce = (uint32_t)op,
		.count = count,
		.input = input,
		.output = output,
	};
}

static inline struct pldk__coll_args pldk__args_exscan(const void *input, void *output, size_t count,
						       enum pldk_dtype dtype, enum pldk_reduce_op op)
{
	return (struct pldk__coll_args){
		.op = PLDK_EV_EXSCAN,
		.dtype = (uint32_t)dtype,
		.reduce = (uint32_t)op,
		.count = count,
		.input = input,
		.output = output,
	};
}

#endif /* _PLDK_COLL_ARGS_H */
