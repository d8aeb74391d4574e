import {describe, expect, it} from 'vitest';
import type {PhaseTimes} from '../../../src/ops/server/last-start.ts';
import {selectExtraction} from '../../../src/state/selectors/extraction.ts';
import {selectAlerts, selectHeader} from '../../../src/state/selectors/header.ts';
import {selectLog} from '../../../src/state/selectors/log.ts';
import {selectMounts} from '../../../src/state/selectors/mounts.ts';
import {selectOperations} from '../../../src/state/selectors/operations.ts';
import {selectProcesses} from '../../../src/state/selectors/processes.ts';
import {extractionPaneRows} from '../../../src/ui/panes/extraction-pane.tsx';
import {footerRow, keyRow} from '../../../src/ui/panes/footer.tsx';
import {alertRow, headerRow} from '../../../src/ui/panes/header.tsx';
import {logPaneRows} from '../../../src/ui/panes/log-pane.tsx';
import {mountPaneRows} from '../../../src/ui/panes/mounts-pane.tsx';
import {operationsPaneRows} from '../../../src/ui/panes/operations-pane.tsx';
import {processPaneRows} from '../../../src/ui/panes/processes-pane.tsx';
import {statusRows} from '../../../src/ui/panes/status.tsx';
import {rowText, rowWidth} from '../../../src/ui/theme.ts';
import {linesOf, tonesOf} from '../support/lines.ts';
import {NOW, sampleFacts} from '../support/sample-facts.ts';
import {factsOf, sampleState} from '../support/sample-state.ts';

const FRAME = {width: 79, height: 8, focused: false, titled: true};

describe('the process pane', () => {
	it('stands holders first, as a tree, with the sum at its root', () => {
		expect(linesOf(processPaneRows(selectProcesses(sampleState()), {...FRAME, height: 12}))).toEqual([
			'─ 2 PROC  8 hold GPUs  1 stuck  of 13 ────────────────────────────── age 0.6s ─',
			'     PID ST  STUCK  CPU% GPU GPU GiB OWNER                COMMAND',
			'>    812 S           0.3       606.4 vllm-kimi-k25-int4   /root/ml-env/bin/vll…',
			'     843 S           0.0 0      75.8 vllm-kimi-k25-int4   ├─ VLLM::Worker_TP0',
			'     844 S           0.0 1      75.8 vllm-kimi-k25-int4   ├─ VLLM::Worker_TP1',
			'     845 S           0.0 2      75.8 vllm-kimi-k25-int4   ├─ VLLM::Worker_TP2',
			'     846 S           0.0 3      75.8 vllm-kimi-k25-int4   ├─ VLLM::Worker_TP3',
			'     847 S           0.0 4      75.8 vllm-kimi-k25-int4   ├─ VLLM::Worker_TP4',
			'     848 S           0.0 5      75.8 vllm-kimi-k25-int4   ├─ VLLM::Worker_TP5',
			'     849 S           0.0 6      75.8 vllm-kimi-k25-int4   ├─ VLLM::Worker_TP6',
			'     850 S           0.0 7      75.8 vllm-kimi-k25-int4   └─ VLLM::Worker_TP7',
			'    9120 D   4m11s     -             login session c3     python /tmp/02b_extr…',
		]);
	});

	it('says what an empty list comes from', () => {
		const rows = linesOf(
			processPaneRows(
				selectProcesses(sampleState({view: {filter: {...sampleState().view.filter, processes: 'nowhere'}}})),
				FRAME,
			),
		);
		expect(rows[0]).toContain('filter nowhere (0)');
		expect(rows[1]).toBe(' no process matches nowhere (Esc clears)');
	});

	it('cannot be made to draw outside its line by a command', () => {
		const lines = new Map([['812@8120', `\x1b[2J\x1b]0;x\x07${'日本'.repeat(60)}\nrm -rf`]]);
		const rows = processPaneRows(
			selectProcesses(sampleState({facts: factsOf({...sampleFacts, 'command-lines': {lines}})})),
			FRAME,
		);
		expect(rowText(rows[2] ?? [])).toContain('^[[2J^[]0;x^G日本日…');
		expect(rowWidth(rows[2] ?? [])).toBe(79);
	});
});

describe('the mount pane', () => {
	it('stands the worst first and gives the time of silence for a size', () => {
		const rows = mountPaneRows(selectMounts(sampleState()), FRAME);
		expect(linesOf(rows)).toEqual([
			'─ 3 MOUNTS  4 ok  1 in trouble ───────────────────────────────────── age 0.6s ─',
			' STATE     PATH        TYPE      USED/TOTAL  USE      FREE NOTE',
			'>HUNG      /data       ceph       for 4m12s                no answer',
			' ok        /shared     nfs4     1.2/8.0 TiB  15%   6.8 TiB',
			' ok        /           ext4     118/252 GiB  47%   134 GiB',
			' ok        /dev/shm    tmpfs    0.1/252 GiB   0%   252 GiB volatile',
			' ok        /tmp        tmpfs   1.0/64.0 GiB   2%  63.0 GiB volatile',
		]);
		expect(tonesOf(rows[2])).toEqual([
			'accent:>',
			'bad:HUNG',
			'plain:/data',
			'dim:ceph',
			'bad:for 4m12s',
			'bad:no answer',
		]);
	});
});

describe('the extraction pane', () => {
	it('shows progress, what is missing and why nothing moves', () => {
		expect(linesOf(extractionPaneRows(selectExtraction(sampleState()), FRAME))).toEqual([
			'─ 4 EXTRACT  no run ──────────────────────────────────────────────── age 0.6s ─',
			' ━━━━━━━━━━━━━━━━━━━━━━━━━━━━──────────────────────────── 18,421/37,312 49.3%',
			' rate -   ETA -   no run reports',
			' last sample 2h41m ago',
			' 3 holes at 17003   1 suspect 18412: no end record   1 unfinished',
			' disk 2.3 TiB  130 MiB each  needs 2.3 TiB, free unknown',
			' server not running   script gone   1 dump 114 MiB',
			' groups █████████▂ 8/10 full',
		]);
	});

	it('holds a start that is under way against the last one', () => {
		const server = {
			...sampleFacts.server,
			process: 'alive' as const,
			phase: 'loading' as const,
			shards: {done: 31, total: 64},
		};
		const line = (phaseMs: PhaseTimes) => {
			const facts = factsOf({...sampleFacts, server: {...server, lastStart: {phaseMs, topology: null}}});
			return linesOf(extractionPaneRows(selectExtraction(sampleState({facts})), FRAME))[6];
		};
		expect(line({loading: 130_000, memory: 9_000})).toBe(
			' server starting: loading weights 31/64 · last time 2m10s   script gone   1 dump 114 MiB',
		);
		expect(line({memory: 9_000})).toBe(' server starting: loading weights 31/64   script gone   1 dump 114 MiB');
	});

	it('gives the ETA as a range and names the source of the numbers', () => {
		const run = {
			source: 'script log',
			state: 'extracting',
			pid: 1700,
			startTicks: 1,
			alive: true,
			extracted: 60,
			skipped: 18_421,
			errors: 0,
			tokens: 1,
			samplesPerSecond: 1.12,
			tokensPerSecond: 2600,
			bytesPerSecond: 152_000_000,
			etaMs: {low: 15_120_000, high: 18_120_000},
			lastIndex: 1,
			updatedAt: NOW,
			message: null,
		} as const;
		const inventory = sampleFacts.extraction.inventory && {...sampleFacts.extraction.inventory, newestAt: NOW - 2_000};
		const rows = linesOf(
			extractionPaneRows(
				selectExtraction(
					sampleState({facts: factsOf({...sampleFacts, extraction: {...sampleFacts.extraction, run, inventory}})}),
				),
				{...FRAME, width: 100},
			),
		);
		expect(rows[0]).toContain('4 EXTRACT  extracting');
		expect(rows[2]).toBe(' rate 1.12/s  2600 tok/s  145 MiB/s   ETA 4h12m–5h02m');
		expect(rows[3]).toBe(' last sample 2.0s ago   this run 60 new, 18,421 skipped, 0 errors  pid 1700  (script log)');
	});
});

describe('the log pane', () => {
	const log = (view: Parameters<typeof sampleState>[0]) =>
		linesOf(logPaneRows(selectLog(sampleState(view)), {...FRAME, height: 4, width: 60}));

	it('ends at the newest line and says for how long nothing came', () => {
		expect(log({})).toEqual([
			'─ 5 LOG  server sglang_extraction2.log  silent… ─ age 0.6s ─',
			' INFO:     Started server process [1684]',
			' INFO:     Waiting for application startup.',
			' RuntimeError: CUDA out of memory. Tried to allocate 2.50 GiB',
		]);
	});

	it('wraps, scrolls and filters', () => {
		expect(log({view: {logWrap: true}}).slice(1)).toEqual([
			' INFO:     Waiting for application startup.',
			' RuntimeError: CUDA out of memory. Tried to allocate 2.50',
			' GiB',
		]);
		expect(log({view: {logScroll: 2}})[3]).toBe(' INFO:     Started server process [1684]');
		expect(log({view: {filter: {...sampleState().view.filter, log: '!info'}}}).slice(2)).toEqual([
			' WARNING: attention backend falls back to triton',
			' RuntimeError: CUDA out of memory. Tried to allocate 2.50 GiB',
		]);
		expect(log({view: {filter: {...sampleState().view.filter, log: 'nothing like it'}}})[1]).toBe(
			' no line matches nothing like it',
		);
	});
});

describe('the timeline', () => {
	it('puts what to do next first', () => {
		expect(linesOf(operationsPaneRows(selectOperations(sampleState()), FRAME))).toEqual(
			[
				'─ 6 OPS  runbook 1/6 ──────────────────────────────────────────────────────────',
				' next [o 1] vllm-kimi-k25-int4.service runs or comes back at boot',
				' 17:09:38 ssh root@gpu: no answer in 5 s, now by pct exec 129',
				' 17:10:31 vllm-kimi-k25-int4.service is active and enabled',
				' 17:12:40 /data does not answer',
				' 17:16:51 ops1 acknowledged: extraction script is gone',
				' 17:19:24 looked at the unit',
			].map(line => line.replace(/^ \d\d(?=:)/, hour)),
		);
	});

	it('shows the steps of what runs, with their states as words and their times', () => {
		const step = {kind: 'run', id: 'a', script: 'true', limitMs: 1} as const;
		const operation = {
			phase: 'running',
			plan: {
				operation: 'stop-service',
				title: 'stop it',
				tier: 2,
				confirmWord: 'it',
				targets: [],
				excluded: [],
				warnings: [],
				inverse: null,
				steps: [
					{...step, says: 'stop'},
					{...step, says: 'look'},
					{...step, says: 'rest'},
				],
			},
			steps: [
				{state: 'done', words: 'sent', startedAt: NOW - 9_000, endedAt: NOW - 8_000},
				{state: 'running', words: '8 left', startedAt: NOW - 8_000, endedAt: null},
				{state: 'pending', words: '', startedAt: null, endedAt: null},
			],
			startedAt: NOW - 9_000,
			output: ['job 17'],
		} as const;
		expect(
			linesOf(operationsPaneRows(selectOperations(sampleState({operation, journal: []})), {...FRAME, width: 50})),
		).toEqual([
			'─ 6 OPS  1/3 stop it ──────────────────────── 9s ─',
			' [ok] 1 stop  sent                             1s',
			' [..] 2 look  8 left                           8s',
			' [  ] 3 rest',
			'      job 17',
		]);
	});
});

describe('an operation in a narrow pane', () => {
	const until = () => ({state: 'met', words: ''}) as const;
	const wait = {kind: 'wait', looks: [], limitMs: 1, until} as const;
	const steps = Array.from({length: 9}, (_, index) => ({...wait, id: `s${index}`, says: `step number ${index + 1}`}));
	const running = (words: string) => ({
		operation: {
			phase: 'running' as const,
			plan: {
				operation: 'recover' as const,
				title: 'recover it',
				tier: 3 as const,
				confirmWord: 'it',
				targets: [],
				excluded: [],
				warnings: [],
				inverse: null,
				steps,
			},
			steps: steps.map((_, index) =>
				index === 3 || index === 7
					? {
							state: 'running' as const,
							words: index === 3 ? 'step number 4' : words,
							startedAt: NOW - 8_000,
							endedAt: null,
						}
					: {state: index < 7 ? ('done' as const) : ('pending' as const), words: '', startedAt: null, endedAt: null},
			),
			startedAt: NOW - 9_000,
			output: [],
		},
		journal: [],
	});
	const rows = (words: string, height = 8) =>
		linesOf(operationsPaneRows(selectOperations(sampleState(running(words))), {...FRAME, width: 44, height})).slice(1);

	it('stays on the step that waits, not on the check around it, and says whole what it waits for', () => {
		expect(rows('loading: 55 of 64 shards, 4m12s left by the last launch')).toEqual([
			' [ok] 7 step number 7',
			' [..] 8 step number 8                    8s',
			'      loading: 55 of 64 shards, 4m12s left',
			'      by the last launch',
		]);
	});

	it('does not say the name of a step twice', () => {
		expect(rows('step number 8')).toContainEqual(expect.stringMatching(/^ \[\.\.\] 8 step number 8 +8s$/));
	});
});

/** The clock on screen is the operator's: the hour depends on where the test runs. */
const hour = (shown: string): string =>
	` ${String((Number(shown) - new Date(NOW).getTimezoneOffset() / 60 + 48) % 24).padStart(2, '0')}`;

describe('the first two lines and the last', () => {
	const header = (width: number, state = sampleState()) =>
		rowText(headerRow(selectHeader(state), selectAlerts(state), width)).replace(/\d\d:\d\d:\d\d/, 'hh:mm:ss');

	it('says where, by which way and why not the first, and how fresh', () => {
		expect(header(139)).toBe(
			' relight  kpro6/ct129  RW  via ssh root@pve pct exec 129 (not ssh root@gpu: no answer in 5 s, 14s ago)  rec    hh:mm:ss  age 0.6s  !2 CRIT ',
		);
		expect(header(79)).toBe(' kpro6/ct129  RW  via ssh root@pve pct exec 129    hh:mm:ss  age 0.6s  !2 CRIT ');
		for (const width of [20, 39, 59, 79, 139, 199]) expect(header(width)).toHaveLength(width);
	});

	it('keeps what matters most on a narrow screen', () => {
		const {session, view, route} = sampleState();
		const state = {
			...sampleState(),
			session: {...session, mode: 'drill' as const, readOnly: true, dryRun: true},
			view: {...view, frozenAt: NOW - 12_000},
			route: {...route, state: 'down' as const, since: NOW - 60_000},
		};
		expect(header(79, state)).toContain(' kpro6/ct129  DRILL  RO  DRY-RUN   FROZEN 12s ');
		expect(header(139, state)).toContain('NO ROUTE for 1m00s, last ssh root@pve pct exec 129');
	});

	it('says the worst first, as many as fit', () => {
		const alerts = selectAlerts(sampleState());
		expect(rowText(alertRow(alerts, 79)).trimEnd()).toBe(
			' !2 CRIT  /data hung, python pid 9120 in D (4m12s)     A lists, a acknowledges',
		);
		expect(rowText(alertRow(alerts, 199))).toContain(
			'(4m12s) | 8 GPUs held at 0% by vllm-kimi-k25-int4.service (11m00s) | extraction script is gone',
		);
		expect(alertRow(selectAlerts(sampleState({alerts: []})), 79)).toEqual([]);
	});

	it('answers the last key in the footer for as long as that is new', () => {
		expect(rowText(footerRow(sampleState({view: {hint: {words: 'no such key', until: NOW + 1}}}), 79))).toBe(
			' no such key',
		);
		expect(rowText(footerRow(sampleState({view: {hint: {words: 'no such key', until: NOW}}}), 79))).toMatch(
			/^ o operations {2}q quit/,
		);
		expect(
			rowText(
				keyRow(
					[
						{key: 'o', label: 'operations', rank: 1},
						{key: 'q', label: 'quit', rank: 2},
					],
					9,
				),
			),
		).toBe(' q quit ');
	});
});

describe('a screen too small for panes', () => {
	it('has words for as many lines as there are', () => {
		expect(linesOf(statusRows(sampleState(), 60, 5)).map(line => line.slice(0, 40))).toEqual([
			' kpro6/ct129  RW  via ssh root@pve pct e',
			' !2 CRIT  /data hung, python pid 9120 in',
			' 1 GPU   8/8 held idle  606.4/768.0 GiB ',
			' 4 EXT   no run 18,421/37,312 49.3%  -  ',
			' 3 MNT   HUNG /data 4m12s   ok /shared 1',
		]);
		expect(linesOf(statusRows(sampleState(), 40, 1))[0]).toMatch(/^ !2 CRIT/);
		expect(linesOf(statusRows(sampleState({alerts: []}), 40, 1))[0]).toMatch(/^ 1 GPU {3}8\/8 held idle/);
	});
});
