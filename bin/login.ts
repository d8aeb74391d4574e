import {existsSync, readFileSync} from 'node:fs';
import {userInfo} from 'node:os';
import {join} from 'node:path';
import {parseMountinfo} from '../src/ops/formats/mountinfo.ts';
import type {Target} from '../src/ops/target.ts';
import type {Operator} from '../src/ops/transports/ssh-settings.ts';

/** What the operator's login gives, read once, here and nowhere else. */
export function operatorOf(env: NodeJS.ProcessEnv): Operator {
	const {username, homedir} = userInfo();
	return {user: env.USER || username, home: env.HOME || homedir, agent: env.SSH_AUTH_SOCK || null};
}

export const stateDirectory = (env: NodeJS.ProcessEnv, operator: Operator): string =>
	join(env.XDG_STATE_HOME || join(operator.home, '.local/state'), 'relight');

/** Where a configuration is looked for, best first. */
export const configPlaces = (
	env: NodeJS.ProcessEnv,
	operator: Operator,
	given: string | undefined,
	cwd: string,
): readonly string[] =>
	given
		? [join(given.startsWith('/') ? '/' : cwd, given)]
		: [join(cwd, 'relight.yaml'), join(env.XDG_CONFIG_HOME || join(operator.home, '.config'), 'relight/config.yaml')];

/**
 * Why the console's own state must not live there, or null. A journal on the mount that is being watched would hang with
 * it. mountinfo never blocks, whatever is dead.
 */
export function stateTrouble(directory: string, targets: readonly Target[]): string | null {
	if (!existsSync('/proc/self/mountinfo')) return null;
	const mounts = parseMountinfo(readFileSync('/proc/self/mountinfo', 'utf8'));
	const under = mounts.filter(
		mount => directory === mount.path || directory.startsWith(mount.path === '/' ? '/' : `${mount.path}/`),
	);
	const mount = under.sort((one, other) => other.path.length - one.path.length)[0];
	if (!mount) return null;
	const watched = targets.some(
		target =>
			target.routes.some(route => route.ssh === null) && target.expect.mounts.some(each => each.path === mount.path),
	);
	if (watched) return `${directory} lies on ${mount.path}, which is being watched: set XDG_STATE_HOME to a local disk`;
	if (/^(nfs|cifs|smb|ceph|fuse\.(ceph|sshfs|gluster)|9p$|lustre|beegfs)/.test(mount.type))
		return `${directory} lies on ${mount.type} (${mount.path}): set XDG_STATE_HOME to a local disk`;
	return null;
}
