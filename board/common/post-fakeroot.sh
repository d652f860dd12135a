#!/bin/sh
# Buildroot calls this with the final root file system's folder, where modes and owners are what they will be in
# the image.
set -eu
here=$(dirname "$0")
target=${1:?}

# After post-build.sh Buildroot adds the users of packages, their homes and their folders. The users of the box are
# those of overlay/, and what it writes lies in memory or on the data partition.
for file in passwd shadow group; do
	cat "$here/../../overlay/etc/$file" >"$target/etc/$file"
done
"$here/take-out.sh" "$target"
# Buildroot gives BusyBox the SUID bit for programs that this box has not.
chmod 755 "$target/usr/bin/busybox"
"$here/root_rules.py" "$target"
