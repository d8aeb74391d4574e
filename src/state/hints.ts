import type {Hints} from '../ops/probes/probe.ts';
import type {ConsoleState} from './state.ts';

/** What the facts already known make worth asking: named pids and units instead of whole tables. Pure. */
export function hintsOf(
	{facts, target, view}: Pick<ConsoleState, 'facts' | 'target' | 'view'>,
	visiblePids: readonly number[],
	nowMs: number,
): Hints {
	const table = facts.processes?.last?.value;
	const holders = facts.holders?.last?.value.holders ?? [];
	const pids = new Set<number>(visiblePids);
	for (const holder of holders) pids.add(holder.pid);
	const stuckPids: number[] = [];
	for (const {pid, state, stuckSince} of table?.processes ?? []) {
		if (state === 'D') stuckPids.push(pid);
		if (state === 'D' || stuckSince !== null) pids.add(pid);
	}
	const server = facts.server?.last?.value.record;
	if (server) pids.add(server.pid);
	const run = facts.extraction?.last?.value.run;
	if (run?.pid) pids.add(run.pid);
	const selected = Number(view.selected.processes?.split('@')[0]);
	if (selected > 0) pids.add(selected);
	const holding = new Set(holders.map(holder => holder.pid));
	const units = new Set<string>();
	for (const process of table?.processes ?? [])
		if (holding.has(process.pid) && process.owner.kind === 'unit') units.add(process.owner.unit);
	if (server?.unit) units.add(server.unit);
	const serverLog = server?.log ?? null;
	return {
		pids: [...pids],
		stuckPids,
		units: [...units],
		serverLog,
		log: logPath(view.logSource, serverLog, target),
		nowMs,
	};
}

function logPath(
	source: ConsoleState['view']['logSource'],
	serverLog: string | null,
	{extraction}: ConsoleState['target'],
): string | null {
	if (source === 'extraction') return extraction?.log ?? null;
	return source === 'server' ? (serverLog ?? extraction?.log ?? null) : null;
}
