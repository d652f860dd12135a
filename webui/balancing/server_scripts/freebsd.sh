
# --- FreeBSD 12 or newer; rc.conf keeps it over a restart ---

# lo0 needs no setting: FreeBSD answers ARP and neighbour discovery only for addresses of the interface that was asked,
# and takes packets for lo0 whichever interface they come in by.
direct_link=lo0
tunnel_link=lo0
memory=/var/db/fairlead-server-$server
unfit="is not FreeBSD"

directors=""

fits() { [ "$(uname)" = FreeBSD ]; }

# "interface director" of each: gif takes packets out of a tunnel only if it knows who sends them.
gifs() {
	[ -n "$tunnel" ] || return 0
	number=0
	for director in $directors; do
		number=$((number + 1))
		echo "gif${family}0$number $director"
	done
}

# The words after "ifconfig gif..." and in rc.conf
tunnel_words() {
	if [ "$family" = 6 ]; then echo "inet6 tunnel $server $1 up"; else echo "tunnel $server $1 up"; fi
}

inet() {
	if [ "$family" = 6 ]; then echo "inet6 $1"; else echo "inet $1"; fi
}

there() {
	ifconfig "$1" >/dev/null 2>&1
}

has() { # has address [interface]
	ifconfig "${2:--a}" | awk -v wanted="${1%/*}" '/inet/ && $2 == wanted { found = 1 } END { exit !found }'
}

# shellcheck disable=SC2046 # words are meant
add_address() { ifconfig "$2" $(inet "$1") alias; }
# shellcheck disable=SC2046
delete_address() { ifconfig "$2" $(inet "${1%/*}") -alias; }

# "variable words" of what rc.conf gets
rc_lines() {
	places | while read -r vip _; do echo "ifconfig_lo0_aliases $(inet "$vip")"; done
	gifs | while read -r gif director; do
		echo "cloned_interfaces $gif"
		echo "ifconfig_$gif $(tunnel_words "$director")"
		[ "$family" = 4 ] || echo "ifconfig_${gif}_ipv6 inet6 -ifdisabled"
	done
}

rc_has() { # rc_has variable words
	case " $(sysrc -ni "$1") " in *" $2 "*) ;; *) return 1 ;; esac
}

rc_add() {
	rc_has "$1" "$2" || rc_put "$1" "$(sysrc -ni "$1") $2"
}

rc_remove() {
	if rc_has "$1" "$2"; then
		now=" $(sysrc -ni "$1") "
		rc_put "$1" "${now%%" $2 "*} ${now#*" $2 "}"
	fi
}

# A variable that nothing is left in goes.
rc_put() {
	now=$(echo "$2" | sed 's/^ *//; s/ *$//; s/  */ /g')
	if [ -n "$now" ]; then sysrc "$1=$now"; else sysrc -x "$1"; fi >/dev/null
}

remove_rc_lines() {
	while read -r variable words; do
		rc_remove "$variable" "$words"
		if [ "$variable" = cloned_interfaces ] && there "$words"; then ifconfig "$words" destroy; fi
	done
}

set_up() {
	gifs | while read -r gif director; do
		there "$gif" || ifconfig "$gif" create
		# shellcheck disable=SC2046 # words are meant
		ifconfig "$gif" $(tunnel_words "$director")
		[ "$family" = 4 ] || ifconfig "$gif" inet6 -ifdisabled
	done
	add_addresses
	# $memory/rc lists what rc.conf got. An earlier script for this server had more.
	touch "$memory/rc"
	rc_lines >"$memory/wanted"
	grep -vxFf "$memory/wanted" "$memory/rc" | remove_rc_lines
	cp "$memory/wanted" "$memory/rc"
	while read -r variable words; do rc_add "$variable" "$words"; done <"$memory/wanted"
}

undo() {
	[ -d "$memory" ] || return 0
	delete_addresses <"$memory/added"
	remove_rc_lines <"$memory/rc"
	rm -r "$memory"
}

findings_here() {
	gifs | while read -r gif director; do
		if ifconfig "$gif" 2>/dev/null | grep -qF "$server --> $director"; then
			say ok "$gif takes packets out of the tunnel from $director"
		else
			say missing "$gif does not take packets out of the tunnel from $director"
		fi
	done
	rc_lines | while read -r variable words; do
		if rc_has "$variable" "$words"; then
			say ok "rc.conf has $variable with $words"
		else
			say missing "rc.conf has no $variable with $words"
		fi
	done
}

listens() { # listens tcp|udp|sctp number
	sockstat -46l -P "$1" -p "$2" | grep -q ":$2 "
}
