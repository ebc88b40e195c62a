// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Starting the agent of far peers, and where it is found: an abstract socket with 128 random bits for a name, which
 * stand in the world file. The name keeps worlds apart, it keeps nobody out: /proc/net/unix shows it to all of the
 * network namespace. Who may talk is decided by the agent: own user, and the process that holds the rank's claim.
 */
#include "far.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/**
 * pldk__far_address() - where the agent of a world listens
 */
struct sockaddr_un pldk__far_address(const struct shm_header *header, socklen_t *len)
{
	static const char hex[] = "0123456789abcdef";
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char *to = addr.sun_path + 1;
	uint32_t i;

	memcpy(to, "pldk-", 5);
	to += 5;
	for (i = 0; i < sizeof(header->agent_name); i++) {
		*to++ = hex[header->agent_name[i] >> 4];
		*to++ = hex[header->agent_name[i] & 15];
	}
	*len = (socklen_t)(to - (char *)&addr);
	return addr;
}

/* A process that is nobody's child and that no wait() sees: the grandchild of a process which is waited for here. */
static int agent_spawn(int listener, int fd)
{
	pid_t child;
	int status;

	/* No POSIX signal at exit (flags 0): neither a handler nor a waitpid(-1) of the launcher learns of it. */
	child = (pid_t)syscall(SYS_clone, 0ul, NULL, NULL, NULL, NULL);
	if (child < 0)
		return -errno;
	if (!child) {
		pid_t agent = (pid_t)syscall(SYS_clone, 0ul, NULL, NULL, NULL, NULL);
		struct shm_header *header;
		struct shm_stat st;

		if (!agent)
			pldk__far_agent(listener, fd);
		header = agent > 0 ? pldk__shm_mmap(fd, 0, SHM_PAGE) : NULL;
		if (header)
			pldk__store_seq(&header->agent,
					SHM_CLAIM(agent, pldk__shm_stat((uint32_t)agent, &st) ? 0 : st.start));
		_exit(!header);
	}
	while (waitpid(child, &status, __WCLONE) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EAGAIN;
}

/**
 * pldk__far_agent_start() - give a new world its agent
 * @fd: the world, which nobody has joined
 *
 * Return: 0, or a negative errno with its sentence.
 */
int pldk__far_agent_start(int fd)
{
	struct shm_header *header = pldk__shm_mmap(fd, 0, SHM_PAGE);
	struct sockaddr_un addr;
	uint64_t far = 0;
	int listener = -1;
	socklen_t len;
	int ret;

	if (!header)
		return pldk__fail(-ENOMEM, "no addresses to start the agent of far peers");
	ret = pldk__shm_alloc(header, pldk__far_bounce(header->nranks, header->nranks), &far);
	if (ret)
		goto out;
	ret = pldk__shm_reserve(fd, far, pldk__far_bounce(header->nranks, 0));
	if (ret) {
		pldk__fail(ret, "no memory for far peers");
		goto out;
	}
	header->far = far;
	if (getrandom(header->agent_name, sizeof(header->agent_name), 0) != (ssize_t)sizeof(header->agent_name)) {
		ret = pldk__fail(-EAGAIN, "no random numbers for the name of the agent of far peers");
		goto out;
	}
	addr = pldk__far_address(header, &len);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&addr, len) || listen(listener, (int)PLD_MAX_RANKS))
		ret = -errno;
	else
		ret = agent_spawn(listener, fd);
	if (ret)
		pldk__fail(ret, "cannot start the agent of far peers: %s", strerror(-ret));
	else
		pldk__store_release(&header->agent_state, SHM_AGENT_RUNS);
	if (listener >= 0)
		close(listener);
out:
	munmap(header, SHM_PAGE);
	return ret;
}
