import {packageKey} from '../ops/hook/package-flags.ts';
import {type Hints, identityKey} from '../ops/probes/probe.ts';
import {processAt, processOf} from '../ops/probes/process-table.ts';
import type {ConsoleState} from './state.ts';
import {waiting} from './waiting.ts';

/** What the facts already known make worth asking: named pids and units instead of whole tables. Pure. */
export function hintsOf(
	{facts, target, view, operation}: Pick<ConsoleState, 'facts' | 'target' | 'view' | 'operation'>,
	visiblePids: readonly number[],
	nowMs: number,
): Hints {
	const table = facts.processes?.last?.value;
	const holders = facts.holders?.last?.value.holders ?? [];
	const pids = new Set<number>(visiblePids);
	for (const holder of holders) pids.add(holder.pid);
	const waits = waiting(table?.processes ?? []);
	for (const {pid} of waits) pids.add(pid);
	const server = facts.server?.last?.value.record;
	if (server) pids.add(server.pid);
	const run = facts.extraction?.last?.value.run;
	if (run?.pid) pids.add(run.pid);
	const selected = Number(view.selected.processes?.split('@')[0]);
	if (selected > 0) pids.add(selected);
	const units = new Set<string>();
	for (const holder of holders) {
		const owner = processOf(table?.processes ?? [], holder)?.owner;
		if (owner?.kind === 'unit') units.add(owner.unit);
	}
	if (server?.unit) units.add(server.unit);
	// What an operation stops holds no card any more, and it waits to see it stopped.
	if (operation.phase === 'running')
		for (const {kind, identity} of operation.plan.targets) if (kind === 'unit') units.add(identity);
	const serverLog = server?.log ?? null;
	const lines = facts['command-lines']?.last?.value.lines;
	return {
		pids: [...pids],
		stuckPids: waits.filter(({state}) => state === 'D').map(({pid}) => pid),
		unreadLines: [...pids].filter(pid => {
			const process = processAt(table?.processes ?? [], pid);
			return process !== null && lines?.has(identityKey(process)) !== true;
		}),
		units: [...units],
		serverLog,
		unreadPackage: unreadPackage(facts),
		log: logPath(view.logSource, serverLog, target),
		nowMs,
	};
}

function unreadPackage({files}: ConsoleState['facts']): string | null {
	const hook = files?.last?.value.hook;
	const found = hook?.state === 'seen' ? hook.facts.sglang : null;
	return found && !found.flags ? packageKey(found) : null;
}

function logPath(
	source: ConsoleState['view']['logSource'],
	serverLog: string | null,
	{extraction}: ConsoleState['target'],
): string | null {
	if (source === 'extraction') return extraction?.log ?? null;
	return source === 'server' ? (serverLog ?? extraction?.log ?? null) : null;
}
