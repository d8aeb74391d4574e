import {mkdtempSync, readdirSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, beforeEach, expect, it} from 'vitest';
import {
	HOOK_STATES,
	type HookRequest,
	type HookStates,
	HookWriter,
	type WriterConfig,
	type WriterFacts,
} from '../../../src/ops/drill/parts/hook-writer.ts';
import type {LayoutName} from '../../../src/ops/extract/layouts.ts';

/** What the real hook left of one pass in a real torch: test/torch/make_fixtures.py. */
const FIXTURES = join(import.meta.dirname, '../../fixtures/hook');
const FACTS: WriterFacts = {
	server: {pid: 7, start_ticks: 8, boot_id: 'b', parent: {pid: 1, start_ticks: 2}},
	moduleSha256: 'c0de',
	versions: {python: '3.11.2', torch: '1.13.1', sglang: '0.5.12'},
	now: () => 1_790_000_000_000,
};
const asked: {rid: string; ids: number[]}[] = JSON.parse(readFileSync(`${FIXTURES}/requests.json`, 'utf8'));
const requests = asked.map(({rid, ids}): HookRequest => {
	const states = HOOK_STATES.map(name => [name, readFileSync(`${FIXTURES}/raw/req_${rid}/${name}.bin`)]);
	return {rid, ids, states: Object.fromEntries(states) as HookStates};
});

let root = '';
beforeEach(() => {
	root = mkdtempSync(join(tmpdir(), 'relight-hook-writer-'));
});
afterEach(() => rmSync(root, {recursive: true, force: true}));

function write(change: Partial<WriterConfig>, more: readonly HookRequest[] = []): void {
	const base = {layers: [2, 30, 58], ridPrefix: 'relight-', nameless: false, hiddenSize: 8, final: 'post' as const};
	const writer = new HookWriter({...base, dumpDir: `${root}/dumps`, staging: null, layout: 'legacy', ...change}, FACTS);
	writer.pass([...requests, ...more]);
}

const filesOf = (directory: string): Record<string, string> =>
	Object.fromEntries(
		readdirSync(directory, {recursive: true, withFileTypes: true})
			.filter(entry => entry.isFile())
			.map(entry => join(entry.parentPath, entry.name))
			.sort()
			.map(path => [path.slice(directory.length + 1), readFileSync(path, 'latin1')]),
	);

it('raw dumps and status are the hook’s own, byte for byte', () => {
	write({});
	const made = filesOf(`${root}/dumps`);
	expect(Object.keys(made)).toHaveLength(13);
	expect(made).toEqual(filesOf(`${FIXTURES}/raw`));
});

it.each<LayoutName>(['legacy', 'specforge', 'universal', 'speculators'])(
	'staged containers of layout %s and their sidecars are the hook’s own, byte for byte',
	layout => {
		write({layout, staging: `${root}/staging`});
		const made = filesOf(`${root}/staging`);
		expect(Object.keys(made)).toHaveLength(4);
		expect(made).toEqual(filesOf(`${FIXTURES}/${layout}`));
	},
);

it('passes over what the hook passes over, and counts it', () => {
	const [first] = requests as [HookRequest];
	const others = ['HEALTH_CHECK_1', 'somebody-1', 'relight-../x', first.rid ?? ''].map(rid => ({...first, rid}));
	write({}, [...others, {...first, rid: null}]);
	expect(readdirSync(`${root}/dumps`)).toEqual([
		'relight_hs.status.json',
		'req_relight-41-0-ab',
		'req_relight-42-0-cd',
	]);
	const {written, skipped} = JSON.parse(readFileSync(`${root}/dumps/relight_hs.status.json`, 'utf8'));
	expect({written, skipped}).toEqual({
		written: {requests: 2},
		skipped: {health_check: 1, foreign_rid: 1, unusable_rid: 1, duplicate: 1, without_rids: 1},
	});
});
