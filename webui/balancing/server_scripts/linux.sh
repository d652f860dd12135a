
# --- Linux ---

gue=""

direct_link=lo
tunnel_link=fairlead$family
gre_link=fairleadgre$family

# The interfaces of tunnels that are needed
links() {
	[ -z "$tunnel" ] || echo "$tunnel_link"
	[ -z "$gre" ] || echo "$gre_link"
}

# "key value" of each kernel setting that is needed. Of IPv6 there is none: Linux answers for an address only on
# the interface that has it.
settings() {
	[ "$family" = 4 ] && [ -n "$direct$tunnel$gre" ] || return 0
	echo "net/ipv4/conf/all/arp_ignore 1"    # answer ARP only for addresses of the interface that was asked
	echo "net/ipv4/conf/all/arp_announce 2"  # never name a virtual address in ARP requests
	if [ -n "$tunnel$gre" ]; then
		# What comes out of the tunnel has a client as its source, to whom no route leads through the tunnel.
		echo "net/ipv4/conf/all/rp_filter 0"
		links | sed 's|.*|net/ipv4/conf/&/rp_filter 0|'
	fi
}

# $memory/settings has their values from before; what belongs to our own interface goes with it.
change_settings() {
	mkdir -p "$memory"
	touch "$memory/settings"
	settings | while read -r key value; do
		[ -e "/proc/sys/$key" ] || continue
		case $key in
		*/all/*) grep -q "^$key " "$memory/settings" || echo "$key $(cat "/proc/sys/$key")" >>"$memory/settings" ;;
		esac
		echo "$value" >"/proc/sys/$key"
	done
}

there() {
	ip link show dev "$1" >/dev/null 2>&1
}

kind_of() { # kind_of interface
	case $1-$family in
	"$tunnel_link-4") echo ipip ;;
	"$tunnel_link-6") echo ip6tnl mode ip6ip6 ;;
	"$gre_link-4") echo gre ;;
	"$gre_link-6") echo ip6gre ;;
	esac
}

# They take packets out of tunnels to this server from anywhere. Ones of our own, because the kernel's tunl0, gre0 and
# so on stay behind when they are no longer needed, and may be somebody else's.
make_tunnels() {
	for link in $(links); do
		# shellcheck disable=SC2046 # words are meant
		there "$link" || ip link add "$link" type $(kind_of "$link") local "$server"
		ip link set dev "$link" up
	done
	settle
}

# udev gives every new interface the settings of /usr/lib/sysctl.d, some moments after it is there: rp_filter 2 on most.
settle() {
	if [ -n "$(links)" ] && command -v udevadm >/dev/null; then udevadm settle --timeout=20 2>/dev/null || :; fi
}

# GUE is IP in IP inside UDP: what comes to this port goes on to the tunnel's interface.
takes_gue() {
	ip fou show 2>/dev/null | grep -Eq "^port $gue gue$([ "$family" = 4 ] || echo ' -6')( |\$)"
}

take_gue() {
	modprobe fou 2>/dev/null || : # the kernel does not load it by itself; it may be built in
	if ! takes_gue; then
		ip "-$family" fou add port "$gue" gue
		echo "$gue" >"$memory/gue"
	fi
}

end_gue() {
	if [ -e "$memory/gue" ]; then
		port=$(cat "$memory/gue")
		rm "$memory/gue"
		# After a restart it is systemd-networkd's, which has bound it to the address.
		ip "-$family" fou del port "$port" 2>/dev/null || ip "-$family" fou del port "$port" local "$server" 2>/dev/null || :
	fi
}

has() { # has address [interface]
	ip "-$family" -o address show ${2:+dev "$2"} to "$1" 2>/dev/null | grep -q .
}

add_address() { ip address add "$1" dev "$2"; }
delete_address() { ip address del "$1" dev "$2"; }

begin() {
	mkdir -p "$memory"
	make_tunnels
	if [ -n "$gue" ]; then take_gue; else end_gue; fi
	# Before the addresses: from its first moment on none is answered for.
	change_settings
	add_addresses
	[ -n "$tunnel" ] || end_tunnel "$tunnel_link"
	[ -n "$gre" ] || end_tunnel "$gre_link"
	begin_agent
}

end() {
	[ -d "$memory" ] || return 0
	end_agent
	[ ! -e "$memory/added" ] || delete_addresses <"$memory/added"
	while read -r key value; do echo "$value" >"/proc/sys/$key"; done <"$memory/settings"
	end_gue
	end_tunnel "$tunnel_link"
	end_tunnel "$gre_link"
}

forget() {
	rm -rf "$memory"
}

end_tunnel() { # end_tunnel interface
	if there "$1"; then ip link del dev "$1"; fi
}

findings_here() {
	settings | while read -r key value; do
		now=$(cat "/proc/sys/$key" 2>/dev/null || echo nothing)
		if [ "$now" = "$value" ]; then say ok "$key is $value"; else say missing "$key is $now, should be $value"; fi
	done
	if [ -n "$gue" ]; then
		if takes_gue; then say ok "UDP port $gue is a tunnel's"; else say missing "UDP port $gue is not a tunnel's"; fi
	fi
	kept | while read -r one; do
		if is_kept "$one"; then say ok "$one is right"; else say missing "$one is not as it should be"; fi
	done
	agent_findings
}

listens() { # listens tcp|udp|sctp number
	ss -Hln "--$1" | awk '{ print $4, $5 }' | grep -q ":$2\b"
}
