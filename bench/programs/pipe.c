/*
 * NetPIPE's way of measuring: blocks of ever larger sizes go to the other end and come back whole.
 *
 *     pipe serve PORT
 *     pipe ask ADDRESS PORT RATE EPOCH SLOT SIZE…
 *
 * Each end sends at most RATE bytes a second, as through a network card of that speed; 0: as fast as it can.
 * `ask` begins at that second of the clock and spends SLOT seconds on each size, so that several of them, begun
 * together, are always at the same one. Prints a line for each size: bytes, round trips, seconds. A block that is not
 * back when its slot has ended is waited for at most WAIT seconds; then the program ends with what it has.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LARGEST (16 << 20)
#define WAIT 20

static char block[LARGEST];

static double clock_now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* All bytes there or back; 0 when the other end is gone or silent for WAIT seconds. */
static int all(int fd, char *data, long length, int sending)
{
	while (length > 0) {
		long count = sending ? send(fd, data, length, MSG_NOSIGNAL) : recv(fd, data, length, 0);
		if (count <= 0)
			return 0;
		data += count;
		length -= count;
	}
	return 1;
}

static void prepare(int fd, unsigned rate, int wait)
{
	int one = 1;
	struct timeval limit = {.tv_sec = wait};
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	if (rate)
		setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate);
}

/* One client: its rate, then again and again a size and a block, which goes back when it is there whole. */
static void echo(int fd)
{
	uint32_t size, rate;
	prepare(fd, 0, 60);
	if (!all(fd, (char *)&rate, sizeof rate, 0))
		return;
	prepare(fd, rate, 60);
	while (all(fd, (char *)&size, sizeof size, 0) && size <= LARGEST && all(fd, block, size, 0) &&
	       all(fd, block, size, 1))
		;
}

static int serve(int port)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(listener, (struct sockaddr *)&here, sizeof here) || listen(listener, 64)) {
		perror("pipe");
		return 1;
	}
	signal(SIGCHLD, SIG_IGN); /* no zombies */
	for (;;) {
		int fd = accept(listener, NULL, NULL);
		if (fd < 0)
			continue;
		if (!fork()) {
			close(listener);
			echo(fd);
			_exit(0);
		}
		close(fd);
	}
}

static int ask(char *address, int port, unsigned rate, double epoch, double slot, int count, char **sizes)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	prepare(fd, rate, WAIT);
	if (inet_pton(AF_INET, address, &to.sin_addr) != 1 || connect(fd, (struct sockaddr *)&to, sizeof to)) {
		perror("pipe");
		return 1;
	}
	if (!all(fd, (char *)&rate, sizeof rate, 1))
		return 1;
	for (int i = 0; i < count; i++) {
		uint32_t size = strtoul(sizes[i], NULL, 10);
		double begin = epoch + i * slot, wait = begin - clock_now(CLOCK_REALTIME);
		if (size > LARGEST)
			return 2;
		if (wait > 0)
			usleep(wait * 1e6);
		long trips = 0;
		double from = clock_now(CLOCK_MONOTONIC), to_end = begin + slot - clock_now(CLOCK_REALTIME), took;
		do {
			/* In one call, so that size and a small block are one packet. */
			struct iovec parts[2] = {{&size, sizeof size}, {block, size}};
			struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
			long sent = sendmsg(fd, &message, MSG_NOSIGNAL);
			if (sent < (long)sizeof size || !all(fd, block, size + sizeof size - sent, 1) || !all(fd, block, size, 0))
				return 0;
			trips++;
			took = clock_now(CLOCK_MONOTONIC) - from;
		} while (took < to_end);
		printf("%u %ld %.6f\n", size, trips, took);
		fflush(stdout);
	}
	return 0;
}

int main(int count, char **words)
{
	if (count == 3 && !strcmp(words[1], "serve"))
		return serve(atoi(words[2]));
	if (count > 7 && !strcmp(words[1], "ask"))
		return ask(words[2], atoi(words[3]), atof(words[4]), atof(words[5]), atof(words[6]), count - 7, words + 7);
	fprintf(stderr, "usage: pipe serve PORT | pipe ask ADDRESS PORT RATE EPOCH SLOT SIZE...\n");
	return 2;
}
