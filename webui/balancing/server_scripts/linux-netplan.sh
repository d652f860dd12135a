
# --- netplan, with systemd-networkd behind it ---

unfit="has no netplan with systemd-networkd behind it (where NetworkManager is behind it, take the script for that)"
plan=/etc/netplan/90-fairlead-server-$server.yaml

fits() { command -v netplan >/dev/null && [ -d /run/systemd/netif/links ]; }

kept() {
	sysctl_kept
	[ -z "$direct$tunnel$gre" ] || echo "$plan"
}

contents() {
	case $1 in
	"$sysctl_file") sysctl_contents ;;
	"$plan")
		printf '%s\n' 'network:' '  version: 2'
		# Critical: what somebody else put on lo stays there.
		[ -z "$direct" ] || echo '  ethernets:'
		[ -z "$direct" ] || interface lo "$direct" 'critical: true'
		[ -z "$tunnel$gre" ] || echo '  tunnels:'
		[ -z "$tunnel" ] || tunnel "$tunnel_link" "$tunnel"
		[ -z "$gre" ] || tunnel "$gre_link" "$gre"
		;;
	esac
}

tunnel() { # tunnel name addresses
	mode=$(kind_of "$1")
	interface "$1" "$2" 'optional: true' "mode: ${mode##* }" "local: \"$server\"" \
		"remote: \"$(if [ "$family" = 6 ]; then echo ::; else echo 0.0.0.0; fi)\""
}

interface() { # interface name addresses line...
	printf '%s\n' "    $1:" '      renderer: networkd' '      addresses:'
	for vip in $2; do echo "        - \"$(alone "$vip")\""; done
	shift 2
	printf '      %s\n' "$@"
}

# No "netplan apply": that would set up this machine's other interfaces again, too, and cut off whoever is logged in
# over one that is not as its file says. It is in force by ip, and generate sees whether the file is right.
set_up() {
	take_over
	begin
	keep
	[ ! -e "$plan" ] || chmod 600 "$plan" # netplan warns of others
	netplan generate
}

undo() {
	end
	discard
	netplan generate
	forget
}
