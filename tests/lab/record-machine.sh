#!/bin/sh
# Prints what the doctor of the hardware reads: files of /proc and /sys, and the words of ethtool, each under its name.
#
#   sudo sh record-machine.sh > machine.txt
#
# It changes nothing. MAC addresses are left out; whoever gives the file away gives the names of his devices away.

file() {
	[ -r "$1" ] || return 0
	text=$(cat "$1" 2>/dev/null) || return 0
	printf '==> %s <==\n%s\n' "$1" "$text"
}

command() {
	text=$("$@" 2>/dev/null) || return 0
	printf '==> $ %s <==\n%s\n' "$*" "$text"
}

for name in interrupts softirqs net/softnet_stat cmdline; do
	file "/proc/$name"
done
printf '==> /proc/meminfo <==\n%s\n' "$(grep MemTotal /proc/meminfo)"
printf '==> /proc/cpuinfo <==\n%s\n' "$(grep -E '^(processor|physical id|core id|flags)[[:space:]]*:' /proc/cpuinfo)"
for name in /proc/irq/*/smp_affinity_list /proc/sys/net/core/netdev_max_backlog /proc/sys/net/core/netdev_budget; do
	file "$name"
done
for name in /proc/[0-9]*/comm; do
	case $(cat "$name" 2>/dev/null) in
	irqbalance* | tuned | power-profiles-* | thermald | numad) file "$name" ;;
	esac
done

cpu=/sys/devices/system/cpu
file $cpu/online
for here in "$cpu"/cpu[0-9]*; do
	for name in topology/physical_package_id topology/core_id cpufreq/scaling_governor cpufreq/scaling_driver \
		power/pm_qos_resume_latency_us; do
		file "$here/$name"
	done
	for state in "$here"/cpuidle/state*; do
		for name in name latency disable; do
			file "$state/$name"
		done
	done
done
for here in /sys/devices/system/node/node[0-9]*; do
	file "$here/cpulist"
	file "$here/distance"
done
clock=/sys/devices/system/clocksource/clocksource0
for name in $clock/current_clocksource $clock/available_clocksource \
	/sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name /sys/class/dmi/id/bios_vendor /sys/hypervisor/type; do
	file "$name"
done
for here in /sys/bus/pci/devices/*; do
	file "$here/uevent"
	file "$here/irq"
	for name in "$here"/msi_irqs/*; do
		file "$name"
	done
done

for here in /sys/class/net/*; do
	[ -e "$here/device" ] || continue
	for name in carrier speed duplex mtu carrier_down_count threaded \
		device/uevent device/../uevent device/numa_node device/../numa_node; do
		file "$here/$name"
	done
	for name in "$here"/queues/rx-*/rps_cpus "$here"/queues/tx-*/xps_cpus "$here"/statistics/*; do
		file "$name"
	done
	for option in -i -l -g -c -k; do
		command ethtool $option "${here##*/}"
	done
done
