
# --- systemd-networkd, 244 or newer ---

unfit="has no running systemd-networkd with networkctl"
folder=/etc/systemd/network
ours=$folder/00-fairlead-server.network

fits() { command -v networkctl >/dev/null && [ -d /run/systemd/netif/links ]; }

# One file alone counts for an interface. If there is one for lo, it gets the addresses, too.
lo_file() {
	file=$(networkctl --no-pager status lo | sed -n 's/^ *Network File: *//p')
	if grep -qsx 'Name=lo' "$file"; then echo "$folder/${file##*/}"; else echo "$ours"; fi
}

kept() {
	sysctl_kept
	if [ -n "$direct" ]; then
		file=$(lo_file)
		[ "$file" != "$ours" ] || echo "$ours"
		echo "$file.d/$server.conf"
	fi
	for link in $(links); do
		echo "$folder/00-$link.netdev"
		echo "$folder/00-$link.network"
	done
}

contents() {
	case $1 in
	"$sysctl_file") sysctl_contents ;;
	# Static: what somebody else put on lo stays there.
	"$ours") printf '%s\n' '[Match]' Name=lo '[Network]' KeepConfiguration=static ;;
	*.conf) echo '[Network]' && address_lines "$direct" ;;
	*.netdev)
		link=${1##*/00-}
		# shellcheck disable=SC2046 # words are meant
		set -- $(kind_of "${link%.netdev}")
		printf '%s\n' '[NetDev]' "Name=${link%.netdev}" "Kind=$1" '[Tunnel]'
		[ $# = 1 ] || echo "Mode=$3"
		printf '%s\n' Independent=yes "Local=$server" Remote=any
		;;
	*.network)
		link=${1##*/00-}
		printf '%s\n' '[Match]' "Name=${link%.network}" '[Link]' RequiredForOnline=no
		printf '%s\n' '[Network]' LinkLocalAddressing=no IPv6AcceptRA=no
		if [ "$link" = "$gre_link.network" ]; then address_lines "$gre"; else address_lines "$tunnel"; fi
		;;
	esac
}

address_lines() {
	for vip in $1; do echo "Address=$(alone "$vip")"; done
}

set_up() {
	take_over
	begin
	keep
	networkctl reload # touches no interface whose files are as before
}

undo() {
	end # first, so that networkd does not remove the same addresses at the same time
	drop_ins=$(lo_file).d
	discard
	rmdir "$drop_ins" 2>/dev/null || :
	# The script for another address of this machine still needs it.
	[ ! -d "$ours.d" ] || write "$ours"
	networkctl reload
	forget
}
