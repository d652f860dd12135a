#!/bin/sh
# shellcheck disable=SC2154 # what the part for the system has
# Sets up this machine as a real server of a Fairlead load balancer.
#
#   sh fairlead-server.sh           sets it up; doing it twice does no harm
#   sh fairlead-server.sh verify    changes nothing; says what is missing, and ends with 1 if something is
#   sh fairlead-server.sh undo      takes back what was set up
#
# Where clients reach it past the load balancer, the machine gets the virtual addresses, so that it takes packets for
# them and answers from them. It must not answer ARP for them: that is the load balancer's to do. Where its weight follows
# its load, it gets an agent that says how much of its processors is idle.
set -eu

server=""
direct=""
tunnel=""
gre=""
ports=""

# A load balancer forwards within one family: the virtual addresses are of the server's.
case $server in *:*) family=6 ;; *) family=4 ;; esac

# "address/length interface" of each virtual address
places() {
	for vip in $direct; do echo "$(alone "$vip") $direct_link"; done
	for vip in $tunnel; do echo "$(alone "$vip") $tunnel_link"; done
	for vip in $gre; do echo "$(alone "$vip") $gre_link"; done
}

alone() {
	if [ "$family" = 6 ]; then echo "$1/128"; else echo "$1/32"; fi
}

# $memory/added lists the places that got their address from here: undo leaves alone what was there before.
add_addresses() {
	mkdir -p "$memory"
	touch "$memory/added"
	places | while read -r vip link; do
		if ! has "$vip" "$link"; then
			echo "$vip $link" >>"$memory/added"
			add_address "$vip" "$link"
		fi
	done
	# An earlier script for this server had more.
	places >"$memory/wanted"
	grep -vxFf "$memory/wanted" "$memory/added" | delete_addresses
}

delete_addresses() {
	while read -r vip link; do
		if has "$vip" "$link"; then delete_address "$vip" "$link"; fi
	done
}

say() { # say ok|missing sentence
	printf '%-7s  %s\n' "$1" "$2"
}

findings() {
	if has "$server"; then
		say ok "this machine is $server"
	else
		say missing "this machine does not have the address $server: is it the right one?"
	fi
	places | while read -r vip link; do
		if has "$vip" "$link"; then say ok "${vip%/*} is on $link"; else say missing "${vip%/*} is not on $link"; fi
	done
	findings_here
	for port in $ports; do
		if listens "${port%/*}" "${port#*/}"; then
			say ok "something listens on ${port%/*} port ${port#*/}"
		else
			say missing "nothing listens on ${port%/*} port ${port#*/}"
		fi
	done
}

verify() {
	found=$(findings)
	echo "$found"
	! echo "$found" | grep -q ^missing
}
