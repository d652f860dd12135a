/*
 * A plugin of QEMU that counts the instructions of a guest, those of its kernel and those of its programs apart.
 *
 *     -plugin instructions.so,out=FILE[,places=on]
 *
 * FILE is mapped, so that whoever maps it, too, reads the counts while the guest runs: two numbers of 64 bits (kernel,
 * programs), then, with places=on, PLACES pairs of an address of the kernel and the instructions that were run from
 * there to the end of its block. A guest of one processor alone: the counts are added to without a lock.
 *
 * The functions of QEMU that are called are declared here, as its header is in no package of Debian 12. They are those
 * of the plugin API version 1 (QEMU 4.2 to 8.2, include/qemu/qemu-plugin.h); later ones refuse the version.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PLACES (1 << 17)
#define EXPORTED __attribute__((visibility("default")))

typedef uint64_t plugin_id;
struct block;
enum operation { ADD };

extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct block *));
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct block *, enum operation, void *, uint64_t);
extern size_t qemu_plugin_tb_n_insns(const struct block *);
extern uint64_t qemu_plugin_tb_vaddr(const struct block *);

EXPORTED int qemu_plugin_version = 1;

static struct {
	uint64_t kernel, programs;
	struct { uint64_t address, count; } places[PLACES];
} *counts;
static int with_places;

/* Where the instructions of a block at this address are counted; NULL when the table is full. */
static uint64_t *place_of(uint64_t address)
{
	uint64_t slot = (address * 0x9e3779b97f4a7c15ull) >> 47;
	for (int tries = 0; tries < PLACES; tries++, slot = (slot + 1) % PLACES) {
		if (!counts->places[slot].address)
			counts->places[slot].address = address;
		if (counts->places[slot].address == address)
			return &counts->places[slot].count;
	}
	return NULL;
}

/* Called once for each block that is translated; QEMU adds by itself whenever the block is run. */
static void translated(plugin_id id, struct block *block)
{
	(void)id;
	uint64_t address = qemu_plugin_tb_vaddr(block), number = qemu_plugin_tb_n_insns(block), *place;
	int of_kernel = address >> 63;
	qemu_plugin_register_vcpu_tb_exec_inline(block, ADD, of_kernel ? &counts->kernel : &counts->programs, number);
	if (with_places && of_kernel && (place = place_of(address)))
		qemu_plugin_register_vcpu_tb_exec_inline(block, ADD, place, number);
}

EXPORTED int qemu_plugin_install(plugin_id id, const void *about, int count, char **words)
{
	(void)about;
	const char *path = NULL;
	for (int i = 0; i < count; i++)
		if (!strncmp(words[i], "out=", 4))
			path = words[i] + 4;
		else if (!strcmp(words[i], "places=on"))
			with_places = 1;
	int file = path ? open(path, O_RDWR | O_CREAT | O_TRUNC, 0666) : -1;
	if (file < 0 || ftruncate(file, sizeof *counts)) {
		fprintf(stderr, "instructions: out=FILE names no file that can be written\n");
		return 1;
	}
	counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if (counts == MAP_FAILED)
		return 1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
