import {existsSync, readdirSync, utimesSync, writeFileSync} from 'node:fs';
import {describe, expect, it} from 'vitest';
import {
	type Actor,
	beatScript,
	breakScript,
	freeScript,
	isStale,
	type Lock,
	lockWords,
	lookScript,
	readLock,
	takeScript,
} from '../../src/ops/act-lock.ts';
import {makeTree, runScript} from './probes/support.ts';

const ALICE: Actor = {
	token: 'token-a',
	operator: 'alice',
	from: "o'laptop",
	operation: 'recover',
	since: 1_767_225_600_000,
};
const BOB: Actor = {...ALICE, token: 'token-b', operator: 'bob'};
const BOOT = {'proc/sys/kernel/random/boot_id': 'boot-1\n', 'etc/x': '', 'run/lock/x': '', 'home/x': ''};

const host = (files: Record<string, string> = BOOT) => {
	const tree = makeTree(files);
	const roots = {proc: `${tree.root}/proc`, etc: `${tree.root}/etc`, home: `${tree.root}/home`};
	const ask = async (script: string): Promise<Lock | null> => readLock((await runScript(script, roots)).stdout);
	return {tree, ask, place: `${tree.root}/run/lock/relight.act`};
};
const held = (lock: Lock | null) => {
	if (lock?.kind !== 'held') throw new Error(`not held: ${JSON.stringify(lock)}`);
	return lock;
};

describe('one operator acts on a host at a time', () => {
	it('the second is told who, from where and doing what; freed by its owner alone', async () => {
		const {tree, ask} = host();
		expect(await ask(lookScript())).toEqual({kind: 'free'});
		expect(await ask(takeScript(ALICE))).toEqual({kind: 'taken'});
		expect(await ask(takeScript(ALICE))).toEqual({kind: 'taken'});
		const seen = held(await ask(takeScript(BOB)));
		expect(seen).toMatchObject({actor: ALICE, otherBoot: false});
		expect(lockWords(seen)).toBe("alice@o'laptop acts here (recover, since 00:00:00Z): wait until that ends");
		await ask(freeScript(BOB.token));
		expect(held(await ask(lookScript())).actor).toEqual(ALICE);
		await ask(freeScript(ALICE.token));
		expect(await ask(lookScript())).toEqual({kind: 'free'});
		expect(await ask(takeScript(BOB))).toEqual({kind: 'taken'});
		tree.remove();
	});

	it('of many that come at once one takes it', async () => {
		const {tree, ask} = host();
		const all = await Promise.all(
			Array.from({length: 12}, (_, at) => ask(takeScript({...ALICE, token: `token-${at}`}))),
		);
		expect(all.filter(lock => lock?.kind === 'taken')).toHaveLength(1);
		expect(all.filter(lock => lock?.kind === 'held')).toHaveLength(11);
		tree.remove();
	});

	it('a lock without a sign of life is named, and broken only when asked; nothing is deleted', async () => {
		const {tree, ask, place} = host();
		await ask(takeScript(ALICE));
		const long = Date.now() / 1_000 - 600;
		utimesSync(place, long, long);
		const old = held(await ask(takeScript(BOB)));
		expect(isStale(old)).toBe(true);
		expect(lockWords(old)).toContain('without a sign of life for 10 min: the lock can be broken');
		await ask(beatScript(BOB.token));
		expect(isStale(held(await ask(lookScript())))).toBe(true);
		await ask(beatScript(ALICE.token));
		expect(isStale(held(await ask(lookScript())))).toBe(false);
		expect(await ask(breakScript())).toEqual({kind: 'broken'});
		expect(await ask(takeScript(BOB))).toEqual({kind: 'taken'});
		expect(readdirSync(`${tree.root}/run/lock`).filter(name => name.includes('.broken.'))).toHaveLength(1);
		tree.remove();
	});

	it('says that the host was booted since', async () => {
		const {tree, ask} = host();
		await ask(takeScript(ALICE));
		writeFileSync(`${tree.root}/proc/sys/kernel/random/boot_id`, 'boot-2\n');
		expect(lockWords(held(await ask(takeScript(BOB))))).toContain('booted since');
		tree.remove();
	});

	it('lies in the home of whoever acts where there is nothing that a boot empties, and nowhere where nothing can be written', async () => {
		const {tree, ask} = host({'proc/sys/kernel/random/boot_id': 'boot-1\n', 'etc/x': '', 'home/x': ''});
		await ask(takeScript(ALICE));
		expect(existsSync(`${tree.root}/home/relight.act/owner`)).toBe(true);
		expect(held(await ask(takeScript(BOB))).actor?.operator).toBe('alice');
		tree.remove();
		const bare = host({'proc/sys/kernel/random/boot_id': 'boot-1\n', 'etc/x': ''});
		expect(await bare.ask(takeScript(ALICE))).toEqual({kind: 'nowhere'});
		bare.tree.remove();
	});

	it('an owner that cannot be read is somebody, never nobody', () => {
		expect(readLock('held boot-1 100 95\nboot-1 {"token":1}\n')).toEqual({
			kind: 'held',
			actor: null,
			ageMs: 5_000,
			otherBoot: false,
		});
		expect(lockWords(held(readLock('held b 100 95\n')))).toBe(
			'somebody acts here (who is not told): wait until that ends',
		);
		expect(readLock('')).toBeNull();
		expect(readLock('bash: line 1')).toBeNull();
	});
});
