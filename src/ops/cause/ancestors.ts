import type {Process} from '../probes/processes.ts';
import {lineage} from '../probes/protected.ts';

/** Parents of a process, nearest first, without pid 1: it adopts everybody and explains nothing. */
export function ancestorsOf(process: Process, table: readonly Process[]): readonly Process[] {
	const byPid = new Map(table.map(each => [each.pid, each]));
	return lineage(process.pid, table)
		.slice(1)
		.flatMap(pid => byPid.get(pid) ?? [])
		.filter(({pid}) => pid > 1);
}

/** Programs that start others for somebody: whoever descends from one was started that way. Names as cut to 15 bytes. */
const STARTERS: readonly (readonly [name: RegExp, how: string])[] = [
	[/^tmux: server/, 'a tmux pane'],
	[/^screen$|^SCREEN$/, 'a screen window'],
	[/^(cron|crond|CRON)$/, 'cron'],
	[/^atd$/, 'at'],
	[/^(supervisord|runsvdir|s6-svscan|pm2|PM2)/, 'a supervisor'],
	[/^(jupyter|jupyter-lab|jupyterhub)/, 'Jupyter'],
	[/^sshd/, 'an SSH session'],
];

/** How it was started by hand or by the clock, from its ancestors; null where none of them tells. */
export function startedBy(ancestors: readonly Process[]): {readonly how: string; readonly by: Process} | null {
	for (const by of ancestors) {
		const how = STARTERS.find(([name]) => name.test(by.name))?.[1];
		if (how) return {how, by};
	}
	return null;
}
