import {type Checked, preflight, preflightState} from '../src/ops/preflight/preflight.ts';
import type {ProbeId} from '../src/ops/probes/probe.ts';
import {CONTENT_LOOKS, LAUNCH_LOOKS, LOOKS} from './looks.ts';
import {openToLook} from './open-to-look.ts';
import type {Options} from './relight.ts';

const EXIT = {pass: 0, warn: 1, fail: 2, unknown: 3} as const;

/** Every check of a long run, with its evidence and what puts it right. Nothing is changed. */
export async function preflightCommand(name: string | undefined, options: Options): Promise<number> {
	const {target, store, engine, seen} = await openToLook(name, options);
	await engine.look([...LOOKS, ...CONTENT_LOOKS]);
	// Owners of new processes and end records take one look more, where the first was answered.
	const {facts} = store.getState();
	const silent = (id: ProbeId) => facts[id]?.failing;
	await engine.look([...(['processes', 'extraction'] as const).filter(id => !silent(id)), ...LAUNCH_LOOKS]);
	seen();
	const checks = preflight(engine.situation());
	const {route} = store.getState();
	const state = route.state === 'up' ? preflightState(checks) : 'unknown';
	if (options.json) {
		const result = {schema: 'relight.preflight/1', host: target.name, at: new Date().toISOString(), state, checks};
		process.stdout.write(`${JSON.stringify(result)}\n`);
	} else {
		for (const check of checks) process.stdout.write(`${lines(check).join('\n')}\n`);
		process.stdout.write(`${state.toUpperCase()}\n`);
	}
	await engine.stop();
	return EXIT[state];
}

function lines({id, says, state, evidence, mends}: Checked): readonly string[] {
	const mend = mends && state !== 'pass' && state !== 'absent' ? `  => relight run ${mends}` : '';
	return [
		`${state.toUpperCase().padEnd(7)} ${id.padEnd(13)} ${says}${mend}`,
		...evidence.map(words => `${' '.repeat(22)}${words}`),
	];
}
