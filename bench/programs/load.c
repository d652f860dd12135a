/*
 * A client that makes load as httperf does: HTTP/1.0, a new connection for each request, a time-out that counts as
 * an error. So many connections begin in a second, whatever becomes of them (-r), or so many are open all the time (-c).
 *
 *     load [-r RATE | -c OPEN] [-s SECONDS] [-t MILLISECONDS] [-b EPOCH] [-f FROM] PATH ADDRESS:PORT…
 *
 * Several ADDRESS:PORT take turns. -f: the client's own address. -b: begin at that second of the clock, so that several
 * clients begin together. A reply counts when it came whole, with status 200, within the seconds; -t is the time that
 * may pass without anything happening on a connection. Prints one JSON object (bench/load.py tells of it).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST 20000	 /* connections at once */
#define LONGEST 3600	 /* seconds of a run */
#define BATCH 256	 /* events taken at once */
#define STEP 0.1	 /* milliseconds: the histogram of reply times counts in these, */
#define STEPS 100000	 /* and up to ten seconds */
#define PIECE (1 << 20)	 /* bytes discarded by one call */

enum { TIMEOUT, REFUSED, RESET, WRONG, NO_PORT, KINDS };
static const char *names[KINDS] = {"timeout", "refused", "reset", "wrong", "no_port"};

struct connection {
	int fd, sent;
	long expected, got; /* bytes of the body */
	double began, stirred;
	struct connection *before, *after; /* in the order in which something happened last */
};

static struct connection all[MOST], *free_ones, stirred_list;
static struct sockaddr_in targets[64], from;
static int target_count, next_target, open_count, poller;
static char request[512];
static int request_length;
static double start, end, timeout = 1.0;
static long tried, replies, late, errors[KINDS], bytes, times[STEPS];
static double longest;
static struct { long replies, bytes; } each[LONGEST];

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void unlink_one(struct connection *c)
{
	c->before->after = c->after;
	c->after->before = c->before;
}

static void stir(struct connection *c, double at)
{
	c->stirred = at;
	c->before = stirred_list.before;
	c->after = &stirred_list;
	c->before->after = c;
	stirred_list.before = c;
}

static void finish(struct connection *c)
{
	close(c->fd);
	unlink_one(c);
	c->after = free_ones;
	free_ones = c;
	open_count--;
}

static void fail(struct connection *c, int kind)
{
	errors[kind]++;
	finish(c);
}

static int kind_of(int error)
{
	return error == ECONNREFUSED ? REFUSED : error == EADDRNOTAVAIL || error == EMFILE ? NO_PORT : RESET;
}

static void arrived(long count, double at)
{
	bytes += count;
	if (at < end)
		each[(int)(at - start)].bytes += count;
}

static void succeed(struct connection *c, double at)
{
	double took = at - c->began;
	int step = took * 1000 / STEP;
	times[step < STEPS ? step : STEPS - 1]++;
	if (took > longest)
		longest = took;
	if (at < end) {
		replies++;
		each[(int)(at - start)].replies++;
	} else {
		late++;
	}
	finish(c);
}

/* The first bytes of an answer: its head, and what of the body came with it. 0 when it is no good answer. */
static int read_head(struct connection *c, char *text, long length)
{
	text[length] = 0;
	char *body = strstr(text, "\r\n\r\n"), *told = strcasestr(text, "\r\ncontent-length:");
	if (strncmp(text, "HTTP/1.", 7) || strncmp(text + 8, " 200", 4) || !body || !told)
		return 0;
	c->expected = atol(told + 17);
	c->got = length - (body + 4 - text);
	return 1;
}

static void take(struct connection *c, double at)
{
	static char text[65537];
	for (;;) {
		/* What comes behind the head is thrown away inside the kernel: this client shares a processor with others. */
		long count = c->expected < 0 ? recv(c->fd, text, sizeof text - 1, 0) : recv(c->fd, text, PIECE, MSG_TRUNC);
		if (count < 0) {
			if (errno != EAGAIN)
				fail(c, kind_of(errno));
			return;
		}
		if (count == 0) {
			if (c->expected >= 0 && c->got == c->expected)
				succeed(c, at);
			else
				fail(c, WRONG);
			return;
		}
		arrived(count, at);
		if (c->expected >= 0)
			c->got += count;
		else if (!read_head(c, text, count)) {
			fail(c, WRONG);
			return;
		}
	}
}

static void happened(struct connection *c, uint32_t events, double at)
{
	unlink_one(c);
	stir(c, at);
	if (!c->sent && events & EPOLLOUT && !(events & EPOLLERR)) {
		c->sent = 1;
		if (send(c->fd, request, request_length, MSG_NOSIGNAL) != request_length) {
			fail(c, kind_of(errno));
			return;
		}
	}
	if (events & EPOLLERR) {
		int error = 0;
		socklen_t size = sizeof error;
		getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
		fail(c, kind_of(error));
	} else if (events & EPOLLIN) {
		take(c, at);
	}
}

static void begin(double at)
{
	struct connection *c = free_ones;
	int one = 1;
	tried++;
	int fd = c ? socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0) : -1;
	if (fd < 0) {
		errors[NO_PORT]++;
		return;
	}
	/* The port is chosen when the other end is known, so that one address is good for 64,000 to each of them. */
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
	struct sockaddr_in *to = &targets[next_target++ % target_count];
	if ((from.sin_family && bind(fd, (struct sockaddr *)&from, sizeof from)) ||
	    (connect(fd, (struct sockaddr *)to, sizeof *to) && errno != EINPROGRESS)) {
		errors[kind_of(errno)]++;
		close(fd);
		return;
	}
	free_ones = c->after;
	*c = (struct connection){.fd = fd, .expected = -1, .began = at};
	stir(c, at);
	open_count++;
	struct epoll_event event = {EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, {.ptr = c}};
	epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
}

static void run(double rate, int most)
{
	struct epoll_event events[BATCH];
	double at = now();
	while (at < end || open_count) {
		if (at < end && rate > 0)
			while (tried < (at - start) * rate)
				begin(at);
		else if (at < end)
			for (int room = most - open_count; room > 0; room--)
				begin(at);
		int count = epoll_wait(poller, events, BATCH, 1);
		at = now();
		for (int i = 0; i < count; i++)
			happened(events[i].data.ptr, events[i].events, at);
		while (stirred_list.after != &stirred_list && at - stirred_list.after->stirred > timeout)
			fail(stirred_list.after, TIMEOUT);
		if (at > end + 2 * timeout)
			while (open_count) /* still coming, but nobody waits for it */
				late++, finish(stirred_list.after);
	}
}

/* Milliseconds within which this share of the replies came. */
static double within(double share)
{
	long wanted = share * (replies + late), seen = 0;
	for (int step = 0; step < STEPS; step++)
		if ((seen += times[step]) > wanted)
			return (step + 0.5) * STEP;
	return 0;
}

static void report(int seconds)
{
	printf("{\"seconds\": %d, \"tried\": %ld, \"replies\": %ld, \"late\": %ld, \"bytes\": %ld, \"errors\": {", seconds,
	       tried, replies, late, bytes);
	for (int kind = 0; kind < KINDS; kind++)
		printf("%s\"%s\": %ld", kind ? ", " : "", names[kind], errors[kind]);
	printf("}, \"median\": %.2f, \"p95\": %.2f, \"p99\": %.2f, \"longest\": %.2f, \"each\": [", within(0.5), within(0.95),
	       within(0.99), longest * 1000);
	for (int second = 0; second < seconds; second++)
		printf("%s[%ld, %ld]", second ? ", " : "", each[second].replies, each[second].bytes);
	printf("]}\n");
}

static struct sockaddr_in place(char *text)
{
	char *colon = strchr(text, ':');
	struct sockaddr_in found = {.sin_family = AF_INET, .sin_port = htons(colon ? atoi(colon + 1) : 0)};
	if (colon)
		*colon = 0;
	if (inet_pton(AF_INET, text, &found.sin_addr) != 1) {
		fprintf(stderr, "load: %s is no address\n", text);
		exit(2);
	}
	return found;
}

int main(int count, char **words)
{
	double rate = 0, moment = 0;
	int most = 1, seconds = 10, option;
	while ((option = getopt(count, words, "r:c:s:t:b:f:")) != -1) {
		if (option == 'r') rate = atof(optarg);
		else if (option == 'c') most = atoi(optarg);
		else if (option == 's') seconds = atoi(optarg);
		else if (option == 't') timeout = atof(optarg) / 1000;
		else if (option == 'b') moment = atof(optarg);
		else if (option == 'f') from = place(optarg);
		else return 2;
	}
	if (count - optind < 2 || count - optind > 64 || seconds < 1 || seconds > LONGEST || most > MOST) {
		fprintf(stderr, "usage: load [-r RATE | -c OPEN] [-s SECONDS] [-t MILLISECONDS] [-b EPOCH] [-f FROM] PATH ADDRESS:PORT...\n");
		return 2;
	}
	request_length = snprintf(request, sizeof request, "GET %.400s HTTP/1.0\r\nHost: bench\r\n\r\n", words[optind]);
	for (int i = optind + 1; i < count; i++)
		targets[target_count++] = place(words[i]);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){MOST + 100, MOST + 100});
	for (int i = 0; i < MOST; i++) {
		all[i].after = free_ones;
		free_ones = &all[i];
	}
	stirred_list.before = stirred_list.after = &stirred_list;
	poller = epoll_create1(0);
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	double wait = moment - (t.tv_sec + t.tv_nsec / 1e9);
	if (wait > 0)
		usleep(wait * 1e6);
	start = now();
	end = start + seconds;
	run(rate, most);
	report(seconds);
	return 0;
}
