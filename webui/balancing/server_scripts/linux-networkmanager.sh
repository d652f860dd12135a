
# --- NetworkManager, 1.20 or newer ---

# Not lo: NetworkManager leaves that alone before version 1.42.
direct_link=fairlead-vip$family
unfit="has no running NetworkManager with nmcli"

fits() { [ "$(nmcli -g RUNNING general status 2>/dev/null)" = running ]; }
kept() { sysctl_kept; }
contents() { sysctl_contents; }

is_connection() {
	nmcli connection show "$1" >/dev/null 2>&1
}

# connect type name addresses setting value...: an interface of this name, now and after each restart
connect() {
	type=$1 name=$2 wanted=
	for vip in $3; do wanted=$wanted${wanted:+,}$(alone "$vip"); done
	shift 3
	set -- "$@" "ipv$family.method" manual "ipv$family.addresses" "$wanted" "ipv$((10 - family)).method" disabled
	if is_connection "$name"; then
		nmcli connection modify "$name" "$@"
		nmcli device reapply "$name" >/dev/null || nmcli connection up "$name"
	else
		nmcli connection add con-name "$name" ifname "$name" type "$type" "$@"
		nmcli connection up "$name"
	fi
}

tunnel() { # tunnel name addresses
	mode=$(kind_of "$1")
	if [ -n "$2" ]; then
		connect ip-tunnel "$1" "$2" ip-tunnel.mode "${mode##* }" ip-tunnel.local "$server" \
			ip-tunnel.remote "$(if [ "$family" = 6 ]; then echo ::; else echo 0.0.0.0; fi)"
	else
		disconnect "$1"
	fi
}

disconnect() {
	if is_connection "$1"; then nmcli connection delete "$1"; fi
}

set_up() {
	take_over
	change_settings
	keep
	if [ -n "$direct" ]; then connect dummy "$direct_link" "$direct"; else disconnect "$direct_link"; fi
	tunnel "$tunnel_link" "$tunnel"
	tunnel "$gre_link" "$gre"
	settle
	change_settings # of the interface that is there now
	begin_agent
}

undo() {
	disconnect "$direct_link"
	disconnect "$tunnel_link"
	disconnect "$gre_link"
	end
	discard
	forget
}
