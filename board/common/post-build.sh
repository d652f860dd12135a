#!/bin/sh
# Buildroot calls this with the root file system's folder before it packs it: takes out what packages bring and
# the box never uses, puts the kernel in, and holds the kernel against what was asked for.
# From Buildroot: BINARIES_DIR, BUILD_DIR. From board/common/buildroot.py: KEYS.
set -eu
here=$(dirname "$0")
target=${1:?}

# Only what overlay/ names is started.
for script in "$target"/etc/init.d/*; do
	[ -e "$here/../../overlay/etc/init.d/${script##*/}" ] || rm -f "$script"
done
"$here/take-out.sh" "$target"

rm -rf "${target:?}/boot"
mkdir "$target/boot"
cp "$BINARIES_DIR/bzImage" "$target/boot/vmlinuz"
cp "$here/../pc/grub/slot.cfg" "$target/boot/slot.cfg"
install -D -m 644 "${KEYS:?}/cert.pem" "$target/etc/rauc/keyring.pem"

"$here/python_packages.py" "$target"
kernel=$(echo "$BUILD_DIR"/linux-[0-9]*)
"$here/kernel_options.py" "$kernel/.config" "$here"/linux/base.config "$here"/linux/[!b]*.config
