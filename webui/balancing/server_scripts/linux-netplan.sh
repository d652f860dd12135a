
# --- netplan, with systemd-networkd behind it ---

unfit="has no netplan with systemd-networkd behind it (where NetworkManager is behind it, take the script for that)"
plan=/etc/netplan/90-fairlead-server-$server.yaml

fits() { command -v netplan >/dev/null && [ -d /run/systemd/netif/links ]; }

kept() {
	sysctl_kept
	echo "$plan"
}

contents() {
	case $1 in
	"$sysctl_file") sysctl_contents ;;
	"$plan")
		printf '%s\n' 'network:' '  version: 2'
		# Critical: what somebody else put on lo stays there.
		[ -z "$direct" ] || interface ethernets lo "$direct" 'critical: true'
		[ -z "$tunnel" ] || interface tunnels "$tunnel_link" "$tunnel" 'optional: true' \
			"mode: $(if [ "$family" = 6 ]; then echo ip6ip6; else echo ipip; fi)" "local: \"$server\"" \
			"remote: \"$(if [ "$family" = 6 ]; then echo ::; else echo 0.0.0.0; fi)\""
		;;
	esac
}

interface() { # interface kind name addresses line...
	printf '%s\n' "  $1:" "    $2:" '      renderer: networkd' '      addresses:'
	for vip in $3; do echo "        - \"$(alone "$vip")\""; done
	shift 3
	printf '      %s\n' "$@"
}

# No "netplan apply": that would set up this machine's other interfaces again, too, and cut off whoever is logged in
# over one that is not as its file says. It is in force by ip, and generate sees whether the file is right.
set_up() {
	take_over
	begin
	keep
	chmod 600 "$plan" # netplan warns of others
	netplan generate
}

undo() {
	end
	discard
	netplan generate
	forget
}
