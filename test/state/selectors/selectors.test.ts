import {describe, expect, it} from 'vitest';
import {identityKey, known} from '../../../src/ops/probes/probe.ts';
import {derive} from '../../../src/state/selectors/derive.ts';
import {detailsOf, selectWhy} from '../../../src/state/selectors/details.ts';
import {selectExtraction} from '../../../src/state/selectors/extraction.ts';
import {face} from '../../../src/state/selectors/face.ts';
import {selectGpus} from '../../../src/state/selectors/gpus.ts';
import {selectAlerts, selectHeader} from '../../../src/state/selectors/header.ts';
import {selectMounts} from '../../../src/state/selectors/mounts.ts';
import {OFFERED, selectOffers} from '../../../src/state/selectors/offers.ts';
import {selectProcesses} from '../../../src/state/selectors/processes.ts';
import {neighbour, selectedKey, visiblePids} from '../../../src/state/selectors/row-keys.ts';
import type {ConsoleState} from '../../../src/state/state.ts';
import {gpu, mount, NOW, process, sampleFacts, service, UNIT} from '../../ui/support/sample-facts.ts';
import {factsOf, heard, sampleState} from '../../ui/support/sample-state.ts';

const GIB = 2 ** 30;

const withFacts = (change: Partial<typeof sampleFacts>, rest: Parameters<typeof sampleState>[0] = {}): ConsoleState =>
	sampleState({facts: factsOf({...sampleFacts, ...change}), ...rest});

describe('derive', () => {
	it('computes again only for another input, and hands back the same object otherwise', () => {
		let times = 0;
		const select = derive([state => state.facts, state => state.alerts], (facts, alerts) => ({
			turn: ++times,
			facts,
			alerts,
		}));
		const state = sampleState();
		const first = select(state);
		expect(select({...state, nowMs: state.nowMs + 1000})).toBe(first);
		expect(select({...state, alerts: []}).turn).toBe(2);
	});

	it('looks at its inputs once for a state, also when it is asked by others in between', () => {
		let looked = 0;
		const inner = derive(
			[
				state => {
					looked++;
					return state.facts;
				},
			],
			facts => ({facts}),
		);
		const outer = derive([inner, state => state.nowMs], (inside, nowMs) => ({inside, nowMs}));
		const state = sampleState();
		const first = outer(state);
		expect([inner(state), outer(state), looked]).toEqual([first.inside, first, 1]);
		const later = {...state, nowMs: state.nowMs + 1000};
		expect(outer(later).inside).toBe(first.inside);
		expect(looked).toBe(2);
	});

	it('keeps every pane’s model for a tick that changes nothing in it', () => {
		const state = sampleState();
		for (const select of [
			selectGpus,
			selectProcesses,
			selectMounts,
			selectExtraction,
			selectAlerts,
			selectHeader,
			selectWhy,
		]) {
			const first = select(state);
			expect(select({...state, work: 3})).toBe(first);
		}
	});
});

describe('face', () => {
	it('tells not heard, fresh, late, stale and failing apart', () => {
		const failing = {failure: {kind: 'timeout', afterMs: 5000}, since: NOW - 20_000, at: NOW} as const;
		expect(face('gpus', null, NOW)).toEqual({kind: 'unheard'});
		expect(face('gpus', heard(1), NOW)).toEqual({kind: 'fresh', ageMs: 600});
		expect(face('gpus', heard(1, 10_000), NOW)).toEqual({kind: 'late', ageMs: 10_000});
		expect(face('gpus', heard(1, 31_000), NOW)).toEqual({kind: 'stale', ageMs: 31_000});
		expect(face('files', heard(1, 31_000), NOW)).toEqual({kind: 'fresh', ageMs: 31_000});
		expect(face('gpus', {...heard(1), failing}, NOW)).toEqual({
			kind: 'failing',
			ageMs: 600,
			forMs: 20_000,
			words: 'no answer in 5 s',
		});
		expect(face('gpus', {turn: 1, last: null, failing}, NOW)).toEqual({
			kind: 'failing',
			ageMs: null,
			forMs: 20_000,
			words: 'no answer in 5 s',
		});
	});
});

describe('cards', () => {
	const states = (...cards: ReturnType<typeof gpu>[]) =>
		selectGpus(withFacts({gpus: {cards, lost: [], moreAt: 0}})).rows.map(({state, level}) => `${state} ${level}`);

	it('are held idle by the time they answer 0 %, not by one look', () => {
		expect(selectGpus(sampleState()).rows[0]).toMatchObject({
			state: 'held idle',
			level: 'warn',
			idleMs: 558_000,
			heldBy: UNIT,
		});
		const short = sampleState({
			history: {at: [NOW - 60_000, NOW], gpus: new Map([['GPU-0', {busyPercent: [0, 0], usedFraction: [0.8, 0.8]}]])},
		});
		expect(selectGpus(short).rows[0]).toMatchObject({state: 'held', level: 'plain', idleMs: null});
		const long = sampleState({
			history: {at: [NOW - 660_000, NOW], gpus: new Map([['GPU-0', {busyPercent: [0, 0], usedFraction: [0.8, 0.8]}]])},
		});
		expect(selectGpus(long).rows[0]).toMatchObject({state: 'held idle', level: 'bad'});
	});

	it('have a state in words for what the driver says and does not say', () => {
		expect(
			states(
				gpu(0, {memoryUsedBytes: known(0)}),
				gpu(1, {busyPercent: known(95)}),
				gpu(2, {needsReset: true}),
				gpu(3, {memoryUsedBytes: {known: false, why: '[N/A]'}}),
				gpu(4, {busyPercent: {known: false, why: '[N/A]'}}),
			),
		).toEqual(['free plain', 'busy good', 'needs reset bad', 'unknown warn', 'held plain']);
	});

	it('name the holder, or say why nobody can be named', () => {
		const holding = (holders: typeof sampleFacts.holders.holders, driverList: 'listed' | 'unresolvable' = 'listed') =>
			selectGpus(
				withFacts({
					gpus: {cards: [gpu(0)], lost: [], moreAt: 0},
					holders: {...sampleFacts.holders, holders, driverList},
				}),
			).rows[0]?.heldBy;
		const holder = {
			pid: 9120,
			startTicks: 91_200,
			memory: [{gpuUuid: 'GPU-0', usedBytes: known(GIB)}],
			devices: [],
			driverName: 'python3',
		};
		expect(holding([{...holder, pid: 843, startTicks: 8430}])).toBe(UNIT);
		expect(holding([holder])).toBe('login session c3');
		expect(holding([{...holder, startTicks: null}])).toBe('pid 9120 not visible here');
		expect(holding([{...holder, pid: 77, startTicks: 770}])).toBe('python3 pid 77');
		expect(holding([{...holder, memory: [], devices: ['nvidia0']}])).toBe('login session c3');
		expect(holding([])).toBe('no visible process');
		expect(holding([], 'unresolvable')).toBe('a pid not visible here');
	});

	it('sum what is known', () => {
		expect(
			selectGpus(
				withFacts({
					gpus: {
						cards: [gpu(0), gpu(1, {memoryUsedBytes: {known: false, why: ''}, powerWatts: {known: false, why: ''}})],
						lost: [{busId: '21:00', says: 'lost', advice: ''}],
						moreAt: 0,
					},
				}),
			).sums,
		).toEqual({usedBytes: 75.8 * GIB, totalBytes: 192 * GIB, watts: 80, free: 0, heldIdle: 1, lost: 1, cards: 3});
	});

	it('stay as they were while the display is frozen', () => {
		const state = sampleState();
		const frozen = {facts: state.facts, history: state.history, nowMs: NOW};
		const later = {
			...state,
			facts: factsOf({...sampleFacts, gpus: {cards: [], lost: [], moreAt: 0}}),
			nowMs: NOW + 60_000,
			view: {...state.view, frozenAt: NOW, frozen},
		};
		expect(selectGpus(later).rows).toHaveLength(8);
		expect(selectGpus(later).face).toEqual({kind: 'fresh', ageMs: 600});
		expect(selectHeader(later).frozenMs).toBe(60_000);
	});
});

describe('processes', () => {
	const pids = (state: ConsoleState) => selectProcesses(state).rows.map(({pid}) => pid);
	const view = sampleState().view;

	it('stand holders first with their family, then the stuck, then the rest', () => {
		expect(pids(sampleState())).toEqual([812, 843, 844, 845, 846, 847, 848, 849, 850, 9120, 1, 501, 9300]);
		expect(selectProcesses(sampleState()).rows[0]).toMatchObject({
			gpuBytes: null,
			gpuBytesBelow: 8 * 75.8 * GIB,
			depth: 0,
		});
		expect(selectProcesses(sampleState()).rows[8]).toMatchObject({
			gpuBytes: 75.8 * GIB,
			depth: 1,
			lastChild: true,
			cards: '7',
		});
	});

	it('keep their places until the next whole table, and show the newest numbers in them', () => {
		const facts = sampleFacts.processes;
		const base = sampleState();
		const keys = facts.processes.map(identityKey);
		const at = (busy: string | undefined, scannedAt: number, processes = facts.processes) => {
			const cpuFraction = new Map(keys.map(key => [key, key === busy ? 0.9 : 0]));
			return {...base, facts: factsOf({...sampleFacts, processes: {...facts, processes, cpuFraction, scannedAt}})};
		};
		const [quiet, busy] = [at(undefined, 1), at('9300@93000', 1)];
		expect(pids(quiet).at(-1)).toBe(9300);
		expect(pids(busy).at(-1)).toBe(9300);
		expect(selectProcesses(busy).rows.at(-1)?.cpuFraction).toBe(0.9);
		expect(pids(at('9300@93000', 2)).indexOf(9300)).toBeLessThan(pids(quiet).indexOf(501));
		const fewer = facts.processes.filter(({pid}) => pid !== 501);
		expect(pids(at(undefined, 2, fewer))).toEqual(pids(quiet).filter(pid => pid !== 501));
	});

	it('are filtered by what the row says, and by what it does not', () => {
		const filtered = (text: string) => pids(sampleState({view: {filter: {...view.filter, processes: text}}}));
		expect(filtered('02b_extract')).toEqual([9120]);
		expect(filtered('!vllm')).toEqual([9120, 1, 501, 9300]);
		expect(filtered('ssh.service')).toEqual([501]);
		expect(filtered('!')).toHaveLength(13);
	});

	it('are sorted as asked, and turned round', () => {
		const sorted = (processes: 'pid' | 'memory', inverted: boolean) =>
			pids(sampleState({view: {tree: false, sort: {processes, inverted}}})).slice(0, 2);
		expect(sorted('pid', false)).toEqual([1, 501]);
		expect(sorted('pid', true)).toEqual([9300, 9120]);
		expect(sorted('memory', false)).toEqual([812, 9120]);
	});

	it('include a holder that is not visible here, which can be no target', () => {
		const ghost = {
			pid: 31_337,
			startTicks: null,
			memory: [{gpuUuid: 'GPU-0', usedBytes: known(GIB)}],
			devices: [],
			driverName: 'python',
		};
		const rows = selectProcesses(withFacts({holders: {...sampleFacts.holders, holders: [ghost]}})).rows;
		expect(rows[0]).toMatchObject({key: '31337@?', state: '?', owner: 'not visible here', cards: '0', gpuBytes: GIB});
	});

	it('leave kernel threads out unless they hang, and hide secrets', () => {
		const table = {
			...sampleFacts.processes,
			processes: [
				process(2, {parentPid: 0}),
				process(30, {parentPid: 2}),
				process(31, {parentPid: 2, state: 'D', stuckSince: NOW - 60_000}),
				process(40),
			],
		};
		const state = withFacts({
			processes: table,
			holders: {...sampleFacts.holders, holders: []},
			'command-lines': {
				lines: new Map([
					['40@400', 'serve --api-key hunter2'],
					['31@310', null],
				]),
			},
		});
		expect(selectProcesses(state).rows.map(({pid, command}) => `${pid} ${command}`)).toEqual([
			'31 python3 (command line unavailable)',
			'40 serve --api-key ***',
		]);
	});

	it('survive a table in which parents form a ring', () => {
		const ring = {
			...sampleFacts.processes,
			processes: [process(10, {parentPid: 11}), process(11, {parentPid: 10}), process(12, {parentPid: 12})],
		};
		expect(pids(withFacts({processes: ring, holders: {...sampleFacts.holders, holders: []}}))).toEqual([12, 10, 11]);
	});
});

describe('mounts', () => {
	it('have one word each, worst first', () => {
		const answered = (used: number) =>
			({kind: 'answered', totalBytes: 100, availableBytes: 100 - used, inodes: 100, inodesFree: 50}) as const;
		const state = withFacts({
			mounts: {
				missing: ['/scratch'],
				mounts: [
					mount('/', {size: answered(10)}),
					mount('/a', {size: answered(90)}),
					mount('/b', {size: answered(97)}),
					mount('/c', {writable: 'emergency read-only'}),
					mount('/d', {unexpected: 'is ext4 on sdb1, expected ceph'}),
					mount('/e', {size: {kind: 'hung', since: NOW - 5_000, childPid: 7, childStartTicks: 1}}),
					mount('/f', {size: {kind: 'failed', says: 'Stale file handle'}}),
					mount('/g', {covered: true}),
					mount('/snap', {type: 'squashfs', writable: 'read-only mount', size: answered(100)}),
				],
			},
		});
		expect(
			selectMounts(state).rows.map(({path, state: word, notes}) => `${path} ${word}${notes ? `: ${notes}` : ''}`),
		).toEqual([
			'/scratch missing: expected here, not mounted',
			'/b full',
			'/c read-only: emergency read-only',
			'/d wrong: is ext4 on sdb1, expected ceph',
			'/e HUNG: no answer',
			'/f failed: Stale file handle',
			'/a filling',
			'/ ok',
			'/snap ok: read-only mount',
		]);
	});
});

describe('the extraction', () => {
	it('counts from files', () => {
		expect(selectExtraction(sampleState())).toMatchObject({
			state: 'no run',
			level: 'warn',
			present: 18_421,
			expected: 37_312,
			holes: 3,
			firstHole: '17003',
			suspects: 1,
			firstSuspect: '18412: no end record',
			lastSampleMs: 9_660_000,
			freeBytes: null,
			script: 'gone',
			dumps: {count: 1, bytes: 120_000_000},
			server: {words: 'not running', level: 'warn'},
		});
		expect(
			selectExtraction(sampleState())
				.groups.map(({state, present}) => `${state} ${present}`)
				.slice(7),
		).toEqual(['full 2000', 'holes 1997', 'growing 424']);
	});

	it('calls a run that writes nothing stalled, and one that died gone', () => {
		const run = {
			source: 'progress',
			state: 'extracting',
			pid: 7,
			startTicks: 1,
			alive: true,
			extracted: 0,
			skipped: 0,
			errors: 0,
			tokens: 0,
			samplesPerSecond: 0,
			tokensPerSecond: 0,
			bytesPerSecond: 0,
			etaMs: null,
			lastIndex: null,
			updatedAt: NOW,
			message: null,
		} as const;
		const state = (change: Partial<typeof run> & {alive?: boolean}) =>
			selectExtraction(withFacts({extraction: {...sampleFacts.extraction, run: {...run, ...change}}})).state;
		expect(state({})).toBe('stalled');
		expect(
			selectExtraction(withFacts({extraction: {...sampleFacts.extraction, run: {...run, alive: false}}})).state,
		).toBe('run is gone');
		const ended = (how: 'stopped' | 'failed' | 'finished') =>
			selectExtraction(withFacts({extraction: {...sampleFacts.extraction, run: {...run, alive: false, state: how}}}));
		expect(ended('stopped')).toMatchObject({state: 'stopped', level: 'warn'});
		expect(ended('failed')).toMatchObject({state: 'failed', level: 'bad'});
		expect(ended('finished')).toMatchObject({state: 'finished', level: 'warn'});
	});
});

describe('why', () => {
	const text = (state: ConsoleState) =>
		selectWhy(state).lines.map(
			({step, parts}) =>
				`${step}: ${parts.map(part => (typeof part === 'string' ? part : 'bytes' in part ? `${Math.round((part.bytes ?? 0) / GIB)} GiB` : '?')).join('')}`,
		);

	it('goes from the memory to what brings it back at boot, and to the fix', () => {
		const lines = text(sampleState());
		expect(lines[0]).toBe('head: GPU 0 01:00  76 GiB held');
		expect(lines[1]).toBe('because: pid 843 VLLM::Worker_TP (start 8430)  76 GiB');
		expect(lines).toContain('because: parent pid 812 vllm');
		expect(lines).toContainEqual(expect.stringContaining(`because: ${UNIT} running, Restart=on-failure`));
		expect(lines).toContainEqual(expect.stringContaining('comes back at boot'));
		expect(lines.at(-1)).toBe('mend: stop it and keep it from the boot: stop-service');
	});

	it('says unknown rather than guess', () => {
		const {holders, services, ...rest} = sampleFacts;
		expect(text(sampleState({facts: factsOf(rest)}))[1]).toBe(
			'because: who holds it is unknown: the last look failed or has not come',
		);
		expect(text(sampleState({facts: factsOf({...rest, holders})}))).toContain(
			'because: whether it comes back is unknown: the unit has not been seen, or the last look failed',
		);
		const quiet = service({unitFileState: 'disabled', wantedBy: []});
		expect(
			text(sampleState({facts: factsOf({...rest, holders, services: {...services, units: [quiet]}})})),
		).toContainEqual(expect.stringContaining('because: does not come back at boot'));
	});

	it('tells through what a launch would dump, and what speaks against it', () => {
		const words = (state: ConsoleState) =>
			detailsOf(state, 'extraction').map(({step, parts}) => `${step}: ${parts.join('')}`);
		expect(words(withFacts({}))).toContain('note: a launch now would dump through the source patch');
		const hook = {state: 'unknown' as const, why: 'python3 did not answer'};
		expect(words(withFacts({files: {...sampleFacts.files, hook}}))).toContain(
			'because: what a launch would dump through is unknown: python3 did not answer',
		);
		const seen = sampleFacts.files.hook;
		if (seen?.state !== 'seen') throw new Error('the sample saw none');
		const lost = {...seen, facts: {...seen.facts, sglang: null}};
		expect(words(withFacts({files: {...sampleFacts.files, hook: lost}}))).toEqual(
			expect.arrayContaining([
				'note: a launch now would dump through nothing',
				'because: /root/ml-env/bin/python3 (3.12.3) finds no sglang',
			]),
		);
	});

	it('has details for every pane', () => {
		for (const pane of ['gpu', 'processes', 'mounts', 'extraction', 'log', 'operations'] as const) {
			expect(detailsOf(sampleState(), pane).length).toBeGreaterThan(0);
			expect(detailsOf(sampleState({facts: factsOf({}), journal: []}), pane).length).toBeGreaterThan(0);
		}
	});
});

describe('the cursor', () => {
	const at = (key: string | null) => sampleState({view: {selected: {...sampleState().view.selected, processes: key}}});

	it('is an identity: a new order never moves it onto another process', () => {
		expect(selectedKey(at('9120@91200'), 'processes')).toBe('9120@91200');
		const turned = at('9120@91200');
		expect(
			selectedKey({...turned, view: {...turned.view, sort: {processes: 'pid', inverted: true}}}, 'processes'),
		).toBe('9120@91200');
		expect(selectedKey(at('9120@1'), 'processes')).toBe('812@8120');
	});

	it('moves by rows as they stand and stops at the ends', () => {
		expect(neighbour(at('843@8430'), 'processes', 1)).toBe('844@8440');
		expect(neighbour(at(null), 'processes', -5)).toBe('812@8120');
		expect(neighbour(at(null), 'processes', 1_000_000)).toBe('9300@93000');
		expect(neighbour(sampleState(), 'log', 1)).toBe(null);
	});

	it('has the pids around it looked at more often', () => {
		expect(visiblePids(at('9120@91200'), 4)).toEqual([849, 850, 9120, 1]);
		expect(visiblePids(at(null), 2)).toEqual([812, 843]);
	});
});

describe('alerts and offers', () => {
	it('stand the worst and unseen first', () => {
		expect(selectAlerts(sampleState()).rows.map(({id, forMs}) => `${id} ${forMs}`)).toEqual([
			'hung:/data 252000',
			'held-idle 660000',
			'script 900000',
		]);
	});

	it('say of each operation what it would do or why not', () => {
		const offers = selectOffers(sampleState());
		expect(offers.map(({operation}) => operation)).toEqual([...OFFERED]);
		expect(offers[0]).toMatchObject({operation: 'stop-service', tier: 2, commands: 2, refused: null});
		expect(offers.find(({operation}) => operation === 'stop-extractor')?.refused).toBeTypeOf('string');
		const {session} = sampleState();
		expect(selectOffers(sampleState({session: {...session, readOnly: true}})).map(({refused}) => refused)).toEqual(
			OFFERED.map(() => 'read-only: W to leave'),
		);
	});
});
