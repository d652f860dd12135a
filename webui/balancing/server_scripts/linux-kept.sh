
# --- what keeps it over a restart of the machine ---

memory=/var/lib/fairlead-server-$server
units=/etc/systemd/system
# After 99-sysctl.conf, the name by which many systems read /etc/sysctl.conf.
sysctl_file=/etc/sysctl.d/zz-fairlead-server-$server.conf

# The script that lasts until the restart may have been tried first: what that one remembers counts.
take_over() {
	tried=/run/fairlead-server-$server
	if [ -d "$tried" ] && [ ! -d "$memory" ]; then
		cp -R "$tried" "$memory"
		rm -r "$tried"
	fi
}

is_kept() {
	[ "$(cat "$1" 2>/dev/null)" = "$(contents "$1")" ]
}

# $memory/kept lists the files. What is right already is not touched; an earlier script for this server had more.
keep() {
	umask 022 # not root alone reads them
	touch "$memory/kept"
	kept >"$memory/wanted"
	grep -vxFf "$memory/wanted" "$memory/kept" | remove_files
	cp "$memory/wanted" "$memory/kept"
	while read -r file; do
		is_kept "$file" || write "$file"
	done <"$memory/wanted"
}

write() {
	mkdir -p "${1%/*}"
	text=$(contents "$1")
	echo "$text" >"$1"
}

remove_files() {
	while read -r file; do rm -f "$file"; done
}

discard() {
	[ ! -e "$memory/kept" ] || remove_files <"$memory/kept"
}

# Of IPv6, or without a virtual address, there are no settings.
sysctl_kept() {
	[ -z "$(settings)" ] || echo "$sysctl_file"
}

sysctl_contents() {
	settings | sed 's/ / = /'
}
