import {mkdtempSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

/**
 * Stand-ins for the programs that lead elsewhere, in a directory for PATH. Each passes arguments and pipes on, and refuses, as
 * the real one does: docker 20-27, util-linux 2.38, sudo 1.9, Proxmox VE 7-8. The file `way` beside them holds the way taken.
 */
const PROGRAMS: Readonly<Record<string, string>> = {
	docker: `
[ "$1" = exec ] || { echo "docker: '$1' is not a docker command." >&2; exit 1; }
shift
input=
while :; do
	case $1 in
		-i) input=yes ;;
		-t | -it) echo 'the input device is not a TTY' >&2; exit 1 ;;
		-u) shift ;;
		-*) echo "unknown shorthand flag: $1" >&2; exit 125 ;;
		*) break ;;
	esac
	shift
done
name=$1
shift
case $name in
	gone) echo 'Error response from daemon: No such container: gone' >&2; exit 1 ;;
	halted) echo 'Error response from daemon: container 4f66ad9a0b2e is not running' >&2; exit 1 ;;
	paused) echo 'Error response from daemon: Container paused is paused, unpause the container before exec' >&2; exit 1 ;;
	forbidden) echo 'permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: Get "http://%2Fvar%2Frun%2Fdocker.sock/v1.24/containers/forbidden/json": dial unix /var/run/docker.sock: connect: permission denied' >&2; exit 1 ;;
	down) echo 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?' >&2; exit 1 ;;
esac
[ "$input" ] || exec </dev/null
mark="docker $name"`,
	nsenter: `
pid=
while :; do
	case $1 in
		-t) pid=$2; shift 2 ;;
		-*) shift ;;
		*) break ;;
	esac
done
[ "$pid" != 99 ] || { echo 'nsenter: stat of /proc/99/ns/user failed: No such file or directory' >&2; exit 1; }
[ "$pid" != 98 ] || { echo 'nsenter: reassociate to namespaces failed: Operation not permitted' >&2; exit 1; }
mark="nsenter $pid"`,
	sudo: `
quiet=
user=root
while :; do
	case $1 in
		-n) quiet=yes; shift ;;
		-u) user=$2; shift 2 ;;
		-*) shift ;;
		*) break ;;
	esac
done
[ "$quiet" ] || { echo 'sudo: a terminal is required to read the password; either use the -S option to read from standard input or configure an askpass helper' >&2; exit 1; }
[ "$user" != locked ] || { echo 'sudo: a password is required' >&2; exit 1; }
[ "$user" != stranger ] || { echo 'ops is not in the sudoers file.  This incident will be reported.' >&2; exit 1; }
mark="sudo $user"`,
	pct: `
[ "$1" = exec ] || exit 255
id=$2
shift 2
[ "$1" = -- ] || { echo "Unknown option: i" >&2; echo '400 unable to parse option' >&2; exit 255; }
shift
case $id in
	7) echo "container '7' not running!" >&2; exit 255 ;;
	8) echo "Configuration file 'nodes/pve/lxc/8.conf' does not exist" >&2; exit 2 ;;
	9) echo 'CT is locked (backup)' >&2; exit 255 ;;
	10) echo 'lxc-attach: 10: ../src/lxc/attach.c: get_attach_context: 405 Connection refused - Failed to get init pid' >&2; exit 1 ;;
esac
mark="pct $id"`,
	ssh: `
host=$1
shift
mark="ssh $host"
set -- /bin/sh -c "$*"`,
};

export function prefixPrograms(): string {
	const directory = mkdtempSync(join(tmpdir(), 'relight-prefix-'));
	for (const [name, script] of Object.entries(PROGRAMS)) {
		const text = `#!/bin/sh\n${script}\necho "$mark" >>${directory}/way\nexec "$@"\n`;
		writeFileSync(join(directory, name), text, {mode: 0o755});
	}
	return directory;
}
