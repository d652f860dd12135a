/*
 * The end of an IP-in-IP tunnel, for a kernel that has no ipip module: takes packets of protocol 4 and gives what is in
 * them to a tun device.
 *
 *     untunnel DEVICE
 */
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int count, char **words)
{
	static char packet[65536];
	struct ifreq wish = {.ifr_flags = IFF_TUN | IFF_NO_PI};
	int device = open("/dev/net/tun", O_RDWR), tunnel = socket(AF_INET, SOCK_RAW, IPPROTO_IPIP), room = 8 << 20;
	if (count != 2 || device < 0 || tunnel < 0) {
		perror("usage: untunnel DEVICE");
		return 2;
	}
	strncpy(wish.ifr_name, words[1], sizeof wish.ifr_name - 1);
	if (ioctl(device, TUNSETIFF, &wish)) {
		perror("untunnel");
		return 1;
	}
	setsockopt(tunnel, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
	for (;;) {
		/* A raw socket gives the outer header, too. */
		long length = recv(tunnel, packet, sizeof packet, 0), outer = ((struct iphdr *)packet)->ihl * 4;
		if (length > outer && write(device, packet + outer, length - outer) < 0)
			perror("untunnel");
	}
}
