/*
 * A cable between two machines of the lab that can carry a flood along.
 *
 *     flood DIRECTOR WORLD
 *
 * Both are UNIX sockets of QEMU's "stream" network (each frame behind its length, four bytes, highest first). It
 * connects to WORLD, listens at DIRECTOR for one machine, and carries frames both ways until one of them leaves or its
 * standard input ends. A flood goes to the director alone, between the frames of the world, as fast as that machine's
 * network card takes it in or at the rate asked for: nothing of it can get anywhere else. One line on standard input
 * begins one, and a line on standard output says when it is over:
 *
 *     KIND ADDRESS PORT SOURCES/BITS RATE COUNT SECONDS
 *     sent COUNT SECONDS
 *
 * KIND is syn, ack (TCP that nobody began) or udp; PORT 0 stands for random ones; sources are random addresses of that
 * network and random ports; RATE is packets a second, 0 for all that the card takes. It ends after COUNT packets or
 * SECONDS, whichever comes first; "stop" ends it before. What the director sends to such sources goes nowhere, as on
 * the Internet.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
	BUFFER = 1 << 17,  /* two of the largest frames that virtio makes */
	BATCH = 16,        /* packets of a flood between two looks at the world's frames */
	QUEUE = 4096,      /* bytes on the way to the director: a cable keeps nothing back */
	MOST = 20000000,   /* packets of one flood */
	LONGEST = 600,     /* seconds of one flood */
	PAYLOAD = 18,      /* bytes of a datagram: the smallest frame of Ethernet has no room for more */
	ETHERNET = 14, IP = 20, TCP = 20, UDP = 8,
};
enum kind { NONE, SYN, ACK, DATAGRAM };

struct pipe { /* bytes on their way to one machine */
	size_t from, to;
	uint8_t bytes[BUFFER];
};
struct side {
	int socket;
	struct pipe in, out;
};
static struct {
	enum kind kind;
	uint32_t address, sources, random_bits; /* in the order of this machine */
	uint16_t port;
	double rate, seconds, began;
	uint64_t count, sent;
} flood;
static uint8_t director_mac[6];
static int knows_director;
static uint64_t seed = 88172645463325252u;

static void die(const char *what)
{
	fprintf(stderr, "flood: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec + at.tv_nsec / 1e9;
}

static uint64_t chance(void) /* xorshift64 */
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static uint32_t sum(const uint8_t *bytes, int length)
{
	uint32_t total = 0;
	for (int at = 0; at + 1 < length; at += 2)
		total += bytes[at] << 8 | bytes[at + 1];
	return total;
}

static void put16(uint8_t *at, uint16_t value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static void put32(uint8_t *at, uint32_t value)
{
	put16(at, value >> 16);
	put16(at + 2, value);
}

static void put_sum(uint8_t *at, uint32_t total)
{
	while (total >> 16)
		total = (total & 0xffff) + (total >> 16);
	put16(at, ~total);
}

/* One packet of the flood, with its length before it; how many bytes that are. */
static size_t make_packet(uint8_t *to)
{
	int tcp = flood.kind != DATAGRAM;
	int inside = tcp ? TCP : UDP + PAYLOAD;
	uint64_t random = chance();
	uint8_t *ethernet = to + 4, *ip = ethernet + ETHERNET, *segment = ip + IP;

	memset(to, 0, 4 + ETHERNET + IP + inside);
	put32(to, ETHERNET + IP + inside);
	memcpy(ethernet, director_mac, 6);
	memcpy(ethernet + 6, "\2fload", 6);
	put16(ethernet + 12, 0x0800);
	ip[0] = 0x45;
	put16(ip + 2, IP + inside);
	put16(ip + 4, random);
	ip[8] = 64;
	ip[9] = tcp ? IPPROTO_TCP : IPPROTO_UDP;
	put32(ip + 12, flood.sources | (random >> 16 & flood.random_bits));
	put32(ip + 16, flood.address);
	put_sum(ip + 10, sum(ip, IP));
	put16(segment, 1024 + (random >> 48) % 64000);
	put16(segment + 2, flood.port ? flood.port : 1 + (chance() & 0x7fff));
	if (tcp) {
		put32(segment + 4, chance());
		segment[12] = TCP / 4 << 4;
		segment[13] = flood.kind == SYN ? 0x02 : 0x10;
		put16(segment + 14, 64240);
		put_sum(segment + 16, sum(ip + 12, 8) + IPPROTO_TCP + TCP + sum(segment, TCP));
	} else {
		put16(segment + 4, inside); /* without a checksum, which UDP allows */
	}
	return 4 + ETHERNET + IP + inside;
}

static void begin(char *line)
{
	char kind[8], address[16], sources[16];
	unsigned port, bits;
	struct in_addr to, from;

	if (!strncmp(line, "stop", 4)) {
		flood.count = flood.sent;
		return;
	}
	if (sscanf(line, "%7s %15s %u %15[^/]/%u %lf %lu %lf", kind, address, &port, sources, &bits, &flood.rate,
		   &flood.count, &flood.seconds) != 8 || !inet_aton(address, &to) || !inet_aton(sources, &from) ||
	    port > 65535 || bits < 8 || bits > 32 || flood.rate < 0 || flood.count > MOST || !(flood.seconds > 0) ||
	    flood.seconds > LONGEST) {
		fprintf(stderr, "flood: not understood, or not within the bounds: %s", line);
		exit(2);
	}
	flood.kind = !strcmp(kind, "syn") ? SYN : !strcmp(kind, "ack") ? ACK : !strcmp(kind, "udp") ? DATAGRAM : NONE;
	if (flood.kind == NONE || !knows_director) {
		fprintf(stderr, "flood: %s: %s", flood.kind ? "no frame of the director yet" : "no such kind", line);
		exit(2);
	}
	flood.address = ntohl(to.s_addr);
	flood.random_bits = bits == 32 ? 0 : 0xffffffffu >> bits;
	flood.sources = ntohl(from.s_addr) & ~flood.random_bits;
	flood.port = port;
	flood.sent = 0;
	flood.began = now();
}

static void end_when_over(void)
{
	double took = now() - flood.began;
	if (flood.sent < flood.count && took < flood.seconds)
		return;
	printf("sent %lu %.3f\n", flood.sent, took);
	fflush(stdout);
	flood.kind = NONE;
}

static void add_flood(struct pipe *out)
{
	double due = flood.rate ? flood.rate * (now() - flood.began) : MOST;
	for (int made = 0; made < BATCH && flood.sent < flood.count && flood.sent < due; made++, flood.sent++)
		out->to += make_packet(out->bytes + out->to);
}

static void flush(struct side *side)
{
	struct pipe *out = &side->out;
	ssize_t done = send(side->socket, out->bytes + out->from, out->to - out->from, MSG_NOSIGNAL);
	if (done < 0 && errno != EAGAIN)
		exit(0); /* that machine was turned off */
	out->from += done > 0 ? done : 0;
	if (out->from == out->to)
		out->from = out->to = 0;
}

static int is_backscatter(const uint8_t *frame)
{
	uint32_t to = (uint32_t)frame[30] << 24 | frame[31] << 16 | frame[32] << 8 | frame[33];
	return flood.random_bits && frame[12] == 8 && frame[13] == 0 && (to & ~flood.random_bits) == flood.sources;
}

/* Take in what came, and put whole frames on their way to the other side. */
static void carry(struct side *from, struct side *to, int is_director)
{
	struct pipe *in = &from->in, *out = &to->out;
	ssize_t got = read(from->socket, in->bytes + in->to, BUFFER - in->to);
	size_t at = 0;

	if (got == 0 || (got < 0 && errno != EAGAIN))
		exit(0);
	in->to += got > 0 ? got : 0;
	while (in->to - at >= 4 + ETHERNET + IP) {
		uint8_t *frame = in->bytes + at + 4;
		size_t length = 4 + ((size_t)in->bytes[at + 1] << 16 | in->bytes[at + 2] << 8 | in->bytes[at + 3]);
		if (in->to - at < length || BUFFER - out->to < length)
			break;
		if (is_director && !knows_director) {
			memcpy(director_mac, frame + 6, 6);
			knows_director = 1;
		}
		if (!is_director || !is_backscatter(frame)) {
			memcpy(out->bytes + out->to, in->bytes + at, length);
			out->to += length;
		}
		at += length;
	}
	memmove(in->bytes, in->bytes + at, in->to -= at);
}

static int open_socket(const char *path, int listens)
{
	struct sockaddr_un place = {.sun_family = AF_UNIX};
	int one = socket(AF_UNIX, SOCK_STREAM, 0), size = QUEUE, accepted;

	if (strlen(path) >= sizeof place.sun_path)
		errno = ENAMETOOLONG, die(path);
	strcpy(place.sun_path, path);
	if (!listens) {
		if (connect(one, (struct sockaddr *)&place, sizeof place))
			die(path);
	} else {
		if (bind(one, (struct sockaddr *)&place, sizeof place) || listen(one, 1))
			die(path);
		if ((accepted = accept(one, NULL, NULL)) < 0)
			die(path);
		close(one);
		one = accepted;
		setsockopt(one, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	}
	fcntl(one, F_SETFL, O_NONBLOCK);
	return one;
}

int main(int words, char **word)
{
	static struct side director, world;
	char line[200];

	if (words != 3) {
		fprintf(stderr, "usage: flood DIRECTOR WORLD\n");
		return 2;
	}
	setvbuf(stdin, NULL, _IONBF, 0); /* a line that was read ahead would not wake up poll */
	world.socket = open_socket(word[2], 0);
	director.socket = open_socket(word[1], 1);
	for (;;) {
		int waits = flood.kind && !director.out.to; /* its turn comes when the world's frames have left */
		short to_director = director.out.to || (waits && !flood.rate) ? POLLOUT : 0;
		struct pollfd of[] = {
			{director.socket, world.out.to < BUFFER / 2 ? POLLIN | to_director : to_director, 0},
			{world.socket, (director.out.to < BUFFER / 2 ? POLLIN : 0) | (world.out.to ? POLLOUT : 0), 0},
			{0, POLLIN, 0},
		};
		if (poll(of, 3, flood.kind ? 1 : -1) < 0)
			die("poll");
		if (of[0].revents & (POLLIN | POLLHUP))
			carry(&director, &world, 1);
		if (of[1].revents & (POLLIN | POLLHUP))
			carry(&world, &director, 0);
		if (flood.kind && !director.out.to)
			add_flood(&director.out);
		if (director.out.to)
			flush(&director);
		if (world.out.to)
			flush(&world);
		if (of[2].revents) {
			if (!fgets(line, sizeof line, stdin))
				return 0;
			begin(line);
		}
		if (flood.kind)
			end_when_over();
	}
}
