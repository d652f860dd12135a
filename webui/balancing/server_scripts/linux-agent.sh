
# --- its agent: how much load it can take ---

agent_ports=""
askers=""

# systemd splits the name of a folder at colons, from version 255 on.
agent=fairlead-agent-$(echo "$server" | tr : -)

# What it needs of systemd: users that are there only as long as a service, and services that leave nothing behind.
runs_agents() {
	[ -d /run/systemd/system ] && [ "$(systemctl --version | sed -n '1s/^systemd \([0-9]*\).*/\1/p')" -ge 236 ]
}

agent_files() {
	[ -z "$agent_ports" ] || printf '%s\n' "$memory/agent" "$units/$agent.socket" "$units/$agent@.service" "$units/$agent.service"
}

agent_contents() {
	case $1 in
	*/agent) agent_program ;;
	*.socket)
		printf '%s\n' '[Unit]' "Description=Agent for the load balancer, asked at $server" '[Socket]'
		for port in $agent_ports; do
			if [ "$family" = 6 ]; then echo "ListenStream=[$server]:$port"; else echo "ListenStream=$server:$port"; fi
		done
		# No askers: their addresses come from DHCP.
		# FreeBind: the address may come later than the sockets. Nobody gets it into its failed state by asking often.
		printf '%s\n' Accept=yes FreeBind=yes MaxConnections=128 TriggerLimitIntervalSec=0
		[ -z "$askers" ] || printf '%s\n' "IPAddressAllow=$askers" IPAddressDeny=any
		printf '%s\n' '[Install]' WantedBy=sockets.target
		;;
	*@.service)
		printf '%s\n' '[Unit]' "Description=Answer of the agent at $server" CollectMode=inactive-or-failed
		agent_service "answer $askers"
		printf '%s\n' StandardInput=socket StandardOutput=socket StandardError=journal RuntimeMaxSec=10
		;;
	*)
		printf '%s\n' '[Unit]' "Description=Load of this machine, for the agent at $server" StartLimitIntervalSec=0
		agent_service watch
		# A number that nobody keeps right any longer must not be said.
		printf '%s\n' 'ExecStopPost=/bin/rm -f idle' Restart=always RestartSec=2 '[Install]' WantedBy=multi-user.target
		;;
	esac
}

# Both have the same user and folder. One line of the journal for each answer would be too many.
agent_service() {
	printf '%s\n' '[Service]' "ExecStart=/bin/sh $memory/agent $1" DynamicUser=yes User=fairlead-agent \
		"RuntimeDirectory=$agent" RuntimeDirectoryPreserve=yes "WorkingDirectory=/run/$agent" LogLevelMax=notice
}

agent_program() {
	cat <<'END'
# The agent of a Fairlead load balancer's real server: how much load this machine can take.
#
#   sh agent watch              for good: writes to the file "idle" how many per cent of all processors were idle
#   sh agent answer [ADDRESS...]  says it to who is connected, if he has one of these addresses
#
# While there is a file "drain" or "maint" beside "idle", it says that instead: the machine gets no new connections.
set -eu
what=$1
shift
case $what in
watch)
	# The counters only grow: what lies between the newest and the oldest of six is the mean of ten seconds.
	set --
	while read -r _ user nice system idle waiting irq softirq steal _ </proc/stat; do
		idle=$((idle + waiting))
		set -- "$@" "$idle $((user + nice + system + idle + irq + softirq + steal))"
		[ $# -le 6 ] || shift
		eval "newest=\${$#}"
		rested=$((${newest% *} - ${1% *}))
		all=$((${newest#* } - ${1#* }))
		if [ "$all" -gt 0 ]; then
			# "waiting" goes back now and then (proc_stat(5)).
			[ "$rested" -ge 0 ] || rested=0
			[ "$rested" -le "$all" ] || rested=$all
			echo "$((100 * rested / all))" >idle.new
			mv idle.new idle
		fi
		sleep 2
	done
	;;
answer)
	case " $* " in "  " | *" $REMOTE_ADDR "*) ;; *) exit 0 ;; esac
	for word in maint drain; do
		if [ -e "$word" ]; then
			echo "$word"
			exit 0
		fi
	done
	read -r idle <idle || exit 0
	echo "ready $idle%"
	;;
esac
END
}

begin_agent() {
	if [ -z "$agent_ports" ]; then
		end_agent
		return 0
	fi
	runs_agents || return 0 # verify says it
	mkdir -p "$memory"
	chmod 755 "$memory" # it is not root who reads its program
	again=
	for file in $(agent_files); do
		agent_is_right "$file" || again=re
		text=$(agent_contents "$file")
		echo "$text" >"$file"
		chmod 644 "$file"
	done
	[ -z "$again" ] || systemctl daemon-reload
	[ "$units" = /run/systemd/system ] || systemctl --quiet enable "$agent.socket" "$agent.service"
	systemctl "${again}start" "$agent.socket" "$agent.service"
}

agent_is_right() {
	[ "$(cat "$1" 2>/dev/null)" = "$(agent_contents "$1")" ]
}

# The script that lasts until the restart may have been tried first, so there may be units in both folders.
end_agent() {
	[ -e "$memory/agent" ] || return 0
	systemctl --quiet disable --now "$agent.socket" "$agent.service"
	for place in /etc/systemd/system /run/systemd/system; do
		rm -f "$place/$agent.socket" "$place/$agent@.service" "$place/$agent.service"
	done
	rm -rf "$memory/agent" "/run/$agent" "/run/private/$agent"
	systemctl daemon-reload
}

agent_findings() {
	[ -n "$agent_ports" ] || return 0
	if ! runs_agents; then
		say missing "this machine has no systemd 236 or newer: its agent has to be another program, on TCP port $agent_ports"
		return 0
	fi
	agent_files | while read -r one; do
		if agent_is_right "$one"; then say ok "$one is right"; else say missing "$one is not as it should be"; fi
	done
	for one in "$agent.socket" "$agent.service"; do
		if systemctl --quiet is-active "$one"; then say ok "$one is active"; else say missing "$one is not active"; fi
	done
	for one in maint drain; do
		[ ! -e "/run/$agent/$one" ] || say ok "its agent says $one, as there is a file /run/$agent/$one"
	done
}
