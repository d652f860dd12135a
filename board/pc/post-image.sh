#!/bin/sh
# Buildroot calls this when the slot's squashfs is there: makes the disk image, its other formats and the update
# bundle. From Buildroot: BINARIES_DIR, BUILD_DIR, HOST_DIR. From board/common/buildroot.py: KEYS.
set -eu
cd "$(dirname "$0")/../.."
export PATH="$HOST_DIR/bin:$HOST_DIR/sbin:$PATH" PYTHONDONTWRITEBYTECODE=1
grub=$(echo "$BUILD_DIR"/grub2-[0-9]*)
python3 -m board.pc.disk "$BINARIES_DIR/rootfs.squashfs" --out "$BINARIES_DIR" \
	--grub "$grub/build-i386-pc/grub-core" "$grub/build-x86_64-efi/grub-core"
xz --keep --force --threads=0 "$BINARIES_DIR/fairlead.img"
python3 -m board.pc.bundle "$BINARIES_DIR/rootfs.squashfs" --keys "${KEYS:?}"
