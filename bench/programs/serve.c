/*
 * A small web server for measurements: GET /N is answered with N bytes, over HTTP/1.0, and the connection ends.
 *
 *     serve PORT [PER_SECOND]
 *
 * With PER_SECOND it takes no more than so many connections in a second; those of a quarter of a second wait in the
 * kernel's queue, and the kernel drops what is more, as in front of a server that has no more to give. Bodies come from a file in memory
 * by sendfile, so that little of the processor that all servers share goes into copying.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST 20000     /* connections at once */
#define BODY (1 << 20) /* bytes of the file in memory, sent again and again */
#define QUEUE 1024     /* connections that wait in the kernel, without a rate */
#define BATCH 256

struct connection {
	int asked, taken; /* bytes of the request so far */
	long left;	  /* bytes of the body */
	char request[256];
};

static struct connection *all[MOST + 100]; /* by descriptor */
static int poller, listener, body;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void finish(int fd)
{
	close(fd);
	free(all[fd]);
	all[fd] = NULL;
}

static void send_body(int fd, struct connection *c)
{
	while (c->left > 0) {
		off_t place = 0;
		long sent = sendfile(fd, body, &place, c->left < BODY ? c->left : BODY);
		if (sent < 0 && errno == EAGAIN)
			return; /* the event that there is room comes */
		if (sent <= 0)
			break;
		c->left -= sent;
	}
	finish(fd);
}

static void answer(int fd, struct connection *c)
{
	char head[128];
	char small[4096] = {0};
	c->left = strncmp(c->request, "GET /", 5) ? 0 : atol(c->request + 5);
	int length = snprintf(head, sizeof head, "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %ld\r\n\r\n", c->left);
	if (length + c->left <= (long)sizeof small) { /* head and body in one packet, as real servers do */
		memcpy(small, head, length);
		memset(small + length, 'x', c->left);
		send(fd, small, length + c->left, MSG_NOSIGNAL);
		c->left = 0;
	} else {
		send(fd, head, length, MSG_NOSIGNAL | MSG_MORE);
	}
	send_body(fd, c);
}

static void happened(int fd)
{
	struct connection *c = all[fd];
	if (!c)
		return;
	if (c->asked) {
		send_body(fd, c);
		return;
	}
	long count = recv(fd, c->request + c->taken, sizeof c->request - 1 - c->taken, 0);
	if (count < 0 && errno == EAGAIN)
		return;
	c->taken += count > 0 ? count : 0;
	c->request[c->taken] = 0;
	if (count > 0 && strstr(c->request, "\r\n\r\n")) {
		c->asked = 1;
		answer(fd, c);
	} else if (count <= 0 || c->taken == sizeof c->request - 1) {
		finish(fd);
	}
}

/* Whether one more was waiting. */
static int accept_one(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	if (fd < 0)
		return 0;
	all[fd] = calloc(1, sizeof *all[fd]);
	struct epoll_event event = {EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, {.fd = fd}};
	epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
	happened(fd); /* mostly the request is there already */
	return 1;
}

static int listen_on(int port, int queue)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(fd, (struct sockaddr *)&here, sizeof here) || listen(fd, queue)) {
		perror("serve");
		exit(1);
	}
	return fd;
}

int main(int count, char **words)
{
	if (count < 2) {
		fprintf(stderr, "usage: serve PORT [PER_SECOND]\n");
		return 2;
	}
	double rate = count > 2 ? atof(words[2]) : 0, may = 0, before = now();
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){MOST, MOST});
	signal(SIGPIPE, SIG_IGN); /* sendfile to a client that went away */
	body = memfd_create("body", 0);
	if (ftruncate(body, BODY))
		return 1;
	listener = listen_on(atoi(words[1]), rate > 0 ? rate / 4 : QUEUE);
	poller = epoll_create1(0);
	struct epoll_event events[BATCH], event = {EPOLLIN, {.fd = listener}};
	if (rate <= 0)
		epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
	for (;;) {
		/* By a rate the listener is asked every other millisecond, and as often as the rate allows. */
		int found = epoll_wait(poller, events, BATCH, rate > 0 ? 2 : -1);
		for (int i = 0; i < found; i++)
			if (events[i].data.fd != listener)
				happened(events[i].data.fd);
			else
				while (accept_one())
					;
		if (rate > 0) {
			double at = now();
			may += (at - before) * rate;
			before = at;
			if (may > rate / 20 + 1)
				may = rate / 20 + 1; /* what was not used within a twentieth of a second is lost */
			while (may >= 1 && accept_one())
				may--;
		}
	}
}
