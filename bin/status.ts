import {allCauses} from '../src/ops/cause/cause.ts';
import {dumpWay} from '../src/ops/operations/dump-way.ts';
import {describe} from '../src/ops/outcome.ts';
import type {ProbeId} from '../src/ops/probes/probe.ts';
import type {ConsoleState} from '../src/state/state.ts';
import {statusLines} from '../src/ui/plain.ts';
import {LOOKS} from './looks.ts';
import {openToLook} from './open-to-look.ts';
import type {Options} from './relight.ts';

const SEEN: readonly ProbeId[] = [...LOOKS, 'kernel-log', 'autostart', 'acting', 'command-lines'];

/** One look at everything. A host that does not answer is unknown (3), which is not broken (2). */
export async function status(name: string | undefined, options: Options): Promise<number> {
	const {store, engine, seen} = await openToLook(name, options);
	await engine.look(SEEN);
	// The end records of a big tree take more than one look, and owners of new processes one more.
	await engine.look(['processes', 'services', 'extraction', 'mounts', 'command-lines']);
	seen();
	const state = store.getState();
	process.stdout.write(
		options.json ? `${JSON.stringify(statusObject(state))}\n` : `${statusLines(state).join('\n')}\n`,
	);
	await engine.stop();
	return exitCode(state);
}

export function exitCode(state: ConsoleState): number {
	if (state.route.state !== 'up') return 3;
	if (state.alerts.some(alert => alert.level === 'critical')) return 2;
	return state.alerts.some(alert => alert.level === 'warning') ? 1 : 0;
}

/** relight.status/1: every reading with its state and the time it is of; unknown is null, never 0. */
function statusObject(state: ConsoleState): object {
	const readings = Object.fromEntries(
		SEEN.map(id => {
			const reading = state.facts[id];
			const at = reading?.last ? new Date(reading.last.at).toISOString() : null;
			if (!reading) return [id, {state: 'absent', at: null, value: null}];
			if (reading.failing)
				return [
					id,
					{
						state: reading.last ? 'failing' : 'unknown',
						at,
						why: describe(reading.failing.failure),
						value: plain(reading.last?.value ?? null),
					},
				];
			return [id, {state: 'ok', at, value: plain(reading.last?.value ?? null)}];
		}),
	);
	const {route, alerts, target} = state;
	return {
		schema: 'relight.status/1',
		host: target.name,
		at: new Date(state.nowMs).toISOString(),
		route: {
			state: route.state,
			label: route.label,
			passedOver: route.passedOver.map(({label, reason}) => ({label, reason})),
		},
		alerts: alerts.map(({id, level, words, remedy, since}) => ({
			id,
			level,
			words,
			remedy,
			since: new Date(since).toISOString(),
		})),
		dumps: dumpsObject(state),
		causes: allCauses(state.facts),
		readings,
	};
}

/** What would dump hidden states in a launch now. */
function dumpsObject({target, facts}: ConsoleState): object {
	const way = dumpWay({target, facts});
	if (way === null) return {state: 'absent', way: null, findings: []};
	return way.known ? {state: 'ok', ...way.verdict} : {state: 'unknown', way: null, findings: [], why: way.why};
}

/** Maps become lists of pairs' values; a known number stays a number and an unknown one becomes null. */
function plain(value: unknown): unknown {
	if (value instanceof Map) return Object.fromEntries([...value].map(([key, each]) => [String(key), plain(each)]));
	if (Array.isArray(value)) return value.map(plain);
	if (value === null || typeof value !== 'object') return value;
	if ('known' in value) return value.known && 'value' in value ? plain(value.value) : null;
	return Object.fromEntries(
		Object.entries(value)
			.filter(([key]) => key !== 'files' || Array.isArray((value as {files?: unknown}).files))
			.map(([key, each]) => [key, plain(each)]),
	);
}
