
# --- Linux ---

direct_link=lo
tunnel_link=fairlead$family

# "key value" of each kernel setting that is needed. Of IPv6 there is none: Linux answers for an address only on
# the interface that has it.
settings() {
	[ "$family" = 4 ] || return 0
	echo "net/ipv4/conf/all/arp_ignore 1"    # answer ARP only for addresses of the interface that was asked
	echo "net/ipv4/conf/all/arp_announce 2"  # never ask by ARP in the name of a virtual address
	if [ -n "$tunnel" ]; then
		# What comes out of the tunnel has a client as its source, to whom no route leads through the tunnel.
		echo "net/ipv4/conf/all/rp_filter 0"
		echo "net/ipv4/conf/$tunnel_link/rp_filter 0"
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

# It takes packets out of tunnels to this server from anywhere. One of our own, because the kernel's tunl0 and ip6tnl0
# stay behind when they are no longer needed, and may be somebody else's.
make_tunnel() {
	if ! there "$tunnel_link"; then
		if [ "$family" = 6 ]; then kind="ip6tnl mode ip6ip6"; else kind=ipip; fi
		# shellcheck disable=SC2086 # words are meant
		ip link add "$tunnel_link" type $kind local "$server"
	fi
	ip link set dev "$tunnel_link" up
}

has() { # has address [interface]
	ip "-$family" -o address show ${2:+dev "$2"} to "$1" 2>/dev/null | grep -q .
}

add_address() { ip address add "$1" dev "$2"; }
delete_address() { ip address del "$1" dev "$2"; }

begin() {
	[ -z "$tunnel" ] || make_tunnel
	# Before the addresses: from its first moment on none is answered for.
	change_settings
	add_addresses
	[ -n "$tunnel" ] || end_tunnel
}

end() {
	[ -d "$memory" ] || return 0
	[ ! -e "$memory/added" ] || delete_addresses <"$memory/added"
	while read -r key value; do echo "$value" >"/proc/sys/$key"; done <"$memory/settings"
	end_tunnel
}

forget() {
	rm -rf "$memory"
}

end_tunnel() {
	if there "$tunnel_link"; then ip link del dev "$tunnel_link"; fi
}

findings_here() {
	settings | while read -r key value; do
		now=$(cat "/proc/sys/$key" 2>/dev/null || echo nothing)
		if [ "$now" = "$value" ]; then say ok "$key is $value"; else say missing "$key is $now, should be $value"; fi
	done
	kept | while read -r one; do
		if is_kept "$one"; then say ok "$one is right"; else say missing "$one is not as it should be"; fi
	done
}

listens() { # listens tcp|udp|sctp number
	ss -Hln "--$1" | awk '{ print $4 $5 }' | grep -q ":$2\b"
}
