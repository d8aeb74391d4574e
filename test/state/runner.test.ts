import {beforeEach, expect, test} from 'vitest';
import {isLockScript} from '../../src/ops/act-lock.ts';
import type {Plan, RunEvent} from '../../src/ops/operations/operation.ts';
import {good} from '../../src/ops/outcome.ts';
import type {Host} from '../../src/ops/transports/host.ts';
import {createRunner, type Runner} from '../../src/state/runner.ts';
import {type ConsoleStore, createConsoleStore} from '../../src/state/store.ts';
import {summaryOf} from '../../src/state/summary.ts';
import {NOW} from '../ui/support/sample-facts.ts';
import {sampleState} from '../ui/support/sample-state.ts';

const plan: Plan = {
	operation: 'stop-service',
	title: 'stop x.service',
	tier: 2,
	confirmWord: 'x',
	targets: [{kind: 'unit', identity: 'x.service', says: 'x.service'}],
	excluded: [],
	steps: [{kind: 'run', id: 'stop', says: 'stop it', script: 'systemctl stop x', limitMs: 1_000}],
	warnings: [],
	inverse: 'systemctl start x',
};

const HELD = `held boot-1 1000 990\nboot-1 ${JSON.stringify({token: 'other', operator: 'ops2', from: 'desk', operation: 'recover', since: NOW})}\n`;

let store: ConsoleStore;
let runner: Runner;
/** What is done, in its order: entries of the journal, and what the host is sent. */
let done: string[];
let lock: string;
let disk: 'ok' | 'full';
let answer: () => Promise<void>;

beforeEach(() => {
	store = createConsoleStore(sampleState());
	[done, lock, disk] = [[], 'taken\n', 'ok'];
	answer = async () => {};
	const host = {
		async ask(_lane: string, script: string) {
			const frees = script.includes('rmdir');
			const what = !isLockScript(script)
				? script
				: frees
					? 'free the lock'
					: script.includes('mv --')
						? 'break the lock'
						: 'take the lock';
			done.push(`sent: ${what}`);
			if (what === script) await answer();
			const stdout = what === 'take the lock' ? lock : what === 'break the lock' ? 'broken\n' : '';
			return good({status: 0, stdout, stderr: '', bytes: Buffer.from(stdout)});
		},
	} as unknown as Host;
	const write = (entry: {words: string}) => void done.push(entry.words);
	runner = createRunner({
		store,
		recorder: {
			note: write,
			async keep(entry) {
				if (disk === 'full') throw new Error('ENOSPC: no space left on device');
				write(entry);
			},
		},
		host,
		clock: () => NOW,
		situation: () => ({
			target: store.getState().target,
			facts: store.getState().facts,
			nowMs: NOW,
			own: null,
			done: [],
		}),
		summarize: () => summaryOf(store.getState()),
		look: async probes => void done.push(`looked: ${probes}`),
		changed() {},
	});
});

test('under the lock, and each intent written before what it intends', async () => {
	const events: RunEvent['type'][] = [];
	expect(await runner.run(plan, event => events.push(event.type))).toBe('done');
	expect(done).toEqual([
		'sent: take the lock',
		'stop x.service (stop-service)',
		'stop it',
		'sent: systemctl stop x',
		'stop it: done',
		'stop x.service: done, and seen to be so',
		'stop-service ended: done',
		'sent: free the lock',
	]);
	expect(events).toEqual(['step', 'step', 'ended']);
	expect(store.getState().operation).toMatchObject({phase: 'idle', last: {operation: 'stop-service', outcome: 'done'}});
});

test('what cannot be written down first is not done, and the lock is let go', async () => {
	disk = 'full';
	expect(await runner.run(plan)).toBe('failed');
	expect(done).toEqual(['sent: take the lock', 'sent: free the lock']);
	expect(store.getState().operation).toMatchObject({last: {words: 'ENOSPC: no space left on device'}});
});

test('the lock of another operator refuses with who acts, and nothing else is sent', async () => {
	lock = HELD;
	expect(await runner.run(plan)).toBe('refused');
	expect(done).toEqual([
		'sent: take the lock',
		expect.stringMatching(/^stop-service refused: ops2@desk acts here \(recover, since /),
	]);
});

test('one at a time: a second is refused while the first goes on, and not after its end', async () => {
	let end = () => {};
	answer = () =>
		new Promise(resolve => {
			end = resolve;
		});
	const first = runner.run(plan);
	expect(runner.isRunning()).toBe(true);
	expect(await runner.run(plan)).toBe('refused');
	await expect.poll(() => done).toContain('sent: systemctl stop x');
	end();
	expect(await first).toBe('done');
	expect(runner.isRunning()).toBe(false);
	answer = async () => {};
	expect(await runner.run(plan)).toBe('done');
});

test('stopped before the next step: what runs ends, and nothing more is sent', async () => {
	const [only] = plan.steps;
	const two = {...plan, steps: [only, only].flatMap(step => step ?? [])};
	answer = async () => runner.abort();
	expect(await runner.run(two)).toBe('cancelled');
	expect(done.filter(each => each === 'sent: systemctl stop x').length).toBe(1);
	expect(done.at(-1)).toBe('sent: free the lock');
});

test('a lock is broken only after that was written down, and is looked at again', async () => {
	expect(await runner.breakLock()).toBe('the action lock is broken');
	expect(done).toEqual([
		'break the action lock of this host',
		'sent: break the lock',
		'the action lock is broken',
		'looked: acting',
	]);
});
