import {setTimeout as sleep} from 'node:timers/promises';
import type {Dump, DumpPlace, DumpSource, Wanted} from './dumps.ts';
import {RAW_STATES, readRaw, refusalOf} from './raw-dump.ts';

/**
 * Raw dumps of the hook, `req_<rid>`: rows with sums and the hash of the ids that were really run; `error.json` when the
 * hook refused, which then counts whatever else is there.
 */
export const namedDumps = (place: DumpPlace): DumpSource => ({
	named: true,
	states: RAW_STATES.length,
	staging: null,
	expect: wanted => () => findNamed(place, wanted),
});

async function findNamed({dir, limitMs}: DumpPlace, wanted: Wanted): Promise<Dump> {
	const path = `${dir}/req_${wanted.rid}`;
	const until = Date.now() + limitMs;
	for (;;) {
		const refusal = refusalOf(path);
		if (refusal !== null) throw new Error(`the hook refused: ${refusal}`);
		const found = readRaw(path, wanted);
		if (typeof found !== 'number') return {paths: [path], ...found};
		if (Date.now() > until)
			throw new Error(
				found === 0 ? `no dump ${path} appeared` : `the dump has ${found} rows where ${wanted.rows} belong`,
			);
		await sleep(5);
	}
}
