import {quote} from '../../command.ts';
import {type BoxPaths, boxPath} from '../paths.ts';

/** Hands a request to the drill, whose pid is fixed when the box is made, and waits for the answer. */
export const ask = (paths: BoxPaths): string => `#!/bin/sh
request='${paths.requests}'/$$ answer='${paths.answers}'/$$
printf '%s\\0' "$@" >"$request.new" && mv "$request.new" "$request"
while [ ! -e "$answer.rc" ]; do
	kill -0 ${process.pid} 2>/dev/null || { echo 'Failed to connect to bus: Connection refused' >&2; exit 1; }
	sleep 0.03
done
cat "$answer.out"
cat "$answer.err" >&2
read -r rc <"$answer.rc"
rm -f "$answer.rc" "$answer.out" "$answer.err"
exit "$rc"
`;

/**
 * What a call looks like that the kernel does not answer: under its own name, in state D, deaf to all but KILL. It ends with
 * the drill, as everything here does. Arguments: its name, and what it waits in.
 */
export const hang = (paths: BoxPaths): string => `#!/bin/sh
trap '' HUP INT TERM
read -r stat </proc/$$/stat
set -- "$1" "$2" \${stat##*) }
printf '{"startTicks":%s,"disguise":{"name":"%s","commandLine":["%s"],"state":"D","waitChannel":"%s"}}' "\${22}" "$1" "$1" "$2" >'${paths.disguises}'/$$.new
mv '${paths.disguises}'/$$.new '${paths.disguises}'/$$
while read -r line; do :; done <&3
`;

export const systemdRun = (paths: BoxPaths): string => `#!/bin/sh
exec '${paths.libexec}/ask' systemd-run "$@"
`;

/** The hypervisor's way into container 129; as strict about \`--\` as the real one. */
export const pct = (paths: BoxPaths): string => `#!/bin/sh
verb=$1 guest=$2
case $verb in
list) printf 'VMID       Status     Lock         Name\\n129        running                 ct129\\n'; exit 0 ;;
'') echo 'ERROR: no command specified' >&2; exit 255 ;;
esac
[ "$guest" = 129 ] || { echo "Configuration file 'nodes/pve/lxc/$guest.conf' does not exist" >&2; exit 2; }
case $verb in
status) echo 'status: running' ;;
config) printf 'arch: amd64\\ncores: 128\\nhostname: ct129\\nmemory: 1048576\\nmp0: /mnt/nvme15t/data,mp=/data\\nostype: debian\\nrootfs: local-zfs:subvol-129-disk-0,size=500G\\nunprivileged: 0\\n' ;;
exec)
	shift 2
	if [ "$1" != -- ]; then
		for word; do case $word in -*) echo "Unknown option: \${word#-}" >&2; break ;; esac; done
		printf '400 unable to parse option\\npct exec <vmid> [<extra-args>] [OPTIONS]\\n' >&2
		exit 255
	fi
	shift
	[ $# -gt 0 ] || { echo '400 not enough arguments' >&2; exit 255; }
	PATH='${boxPath(paths)}' HOME='${paths.home}'
	export PATH HOME
	exec "$@" ;;
*) echo "ERROR: unknown command 'pct $verb'" >&2; exit 255 ;;
esac
`;

/** What the cluster says from the hypervisor once the full pool has been relieved. */
export const ceph = (): string => `#!/bin/sh
case "$1 $2" in
'health '|'health detail') echo 'HEALTH_WARN 2 nearfull osd(s); 3 pool(s) nearfull' ;;
*) echo 'no valid command found' >&2; exit 22 ;;
esac
`;

export const dmesg = (paths: BoxPaths): string => `#!/bin/sh
form=seconds level= since=
for word; do
	case $word in
	-T|--ctime) form=ctime ;;
	--time-format=iso) form=iso ;;
	-r|--raw) form=raw ;;
	-x|--decode) level=1 ;;
	-xT|-Tx) form=ctime level=1 ;;
	-C|-c|--clear|--read-clear) echo 'dmesg: clear kernel buffer failed: Operation not permitted' >&2; exit 1 ;;
	esac
done
read -r up rest <'${paths.proc}/uptime'
exec awk -F '\\t' -v form=$form -v level="$level" -v now="$(date +%s)" -v up="$up" '
BEGIN {split("emerg alert crit err warn notice info debug", words, " ")}
{
	at = now - up + $1
	if (form == "iso") stamp = strftime("%Y-%m-%dT%H:%M:%S", at, 1) sprintf(",%06d+00:00", ($1 - int($1)) * 1000000)
	else if (form == "ctime") stamp = "[" strftime("%a %b %e %H:%M:%S %Y", at, 1) "]"
	else stamp = sprintf("[%12.6f]", $1)
	if (form == "raw") print "<" $2 ">" stamp " " $3
	else if (level) printf "kern  :%-6s: %s %s\\n", words[$2 + 1], stamp, $3
	else print stamp " " $3
}' '${paths.kernelLog}'
`;

/** Listening sockets of the box: sshd, and what the stand-in server noted while it listens. */
export const ss = (paths: BoxPaths): string => `#!/bin/sh
header=1 port=
for word; do
	case $word in
	-*H*|--no-header) header= ;;
	*:*) port=\${word##*:} port=\${port%%[!0-9]*} ;;
	esac
done
[ "$header" ] && echo 'State  Recv-Q Send-Q Local Address:Port Peer Address:PortProcess'
[ -z "$port" ] || [ "$port" = 22 ] && echo 'LISTEN 0      128          0.0.0.0:22        0.0.0.0:*'
for note in '${paths.ports}'/*; do
	[ -f "$note" ] || continue
	read -r pid name <"$note"
	at=\${note##*/}
	[ -z "$port" ] || [ "$port" = "$at" ] || continue
	[ -d '${paths.proc}'/"$pid" ] || continue
	printf 'LISTEN 0      2048         0.0.0.0:%s      0.0.0.0:*    users:(("%s",pid=%s,fd=36))\\n' "$at" "$name" "$pid"
done
exit 0
`;

export const journalctl = (): string => `#!/bin/sh
cat >&2 <<'END'
Hint: You are currently not seeing messages from other users and the system.
      Users in groups 'adm', 'systemd-journal' can see all messages.
      Pass -q to turn off this notice.
No journal files were opened due to insufficient permissions.
END
exit 1
`;

/** The interpreter of the box: the relight bundle in a part. */
export const python = (paths: BoxPaths, program: readonly string[]): string => `#!/bin/sh
RELIGHT_DRILL_BOX='${paths.root}'
export RELIGHT_DRILL_BOX
exec ${program.map(quote).join(' ')} drill-part python "$@"
`;

/** The built-in extractor as a program of the box. */
export const relight = (paths: BoxPaths, program: readonly string[]): string => `#!/bin/sh
RELIGHT_DRILL_BOX='${paths.root}'
export RELIGHT_DRILL_BOX
exec ${program.map(quote).join(' ')} drill-part relight "$@"
`;

/** Tools that act by name, on whatever machine they are: not in a box. */
export const refused = (name: string): string => `#!/bin/sh
echo '${name}: not installed in this box: it would act on processes outside it' >&2
exit 127
`;
