import {expect, test} from 'vitest';
import type {FactValues} from '../../../src/ops/facts.ts';
import type {HookFacts, HookLook, ImportedPackage} from '../../../src/ops/hook/look.ts';
import {HOOK_SHA256} from '../../../src/ops/hook/own.ts';
import {operationEntry} from '../../../src/ops/operations/catalogue.ts';
import {isRefusal, type Plan, type Situation} from '../../../src/ops/operations/operation.ts';
import {known} from '../../../src/ops/probes/probe.ts';
import type {Target} from '../../../src/ops/target.ts';
import {gpu, NOW, process, sampleFacts, service, UNIT, WEIGHTS} from '../../ui/support/sample-facts.ts';
import {factsOf, ROOMY, SOUND, sampleTarget} from '../../ui/support/sample-state.ts';

const NOBODY: Partial<FactValues> = {
	holders: {...sampleFacts.holders, holders: []},
	gpus: {cards: sampleFacts.gpus.cards.map(card => ({...card, memoryUsedBytes: known(0)})), lost: [], moreAt: 0},
	services: {manager: 'systemd', units: []},
	mounts: {...sampleFacts.mounts, mounts: sampleFacts.mounts.mounts.filter(mount => mount.path !== '/data')},
};
const NO_DUMPS: Partial<FactValues> = {extraction: {...sampleFacts.extraction, dumps: []}};

const here = (change: Partial<FactValues> = {}, target: Partial<Target> = {}): Situation => ({
	target: {...sampleTarget, ...target},
	facts: factsOf({...sampleFacts, ...change}),
	nowMs: NOW,
});
const seen = (change: Partial<HookFacts>): HookLook => {
	const {hook} = sampleFacts.files;
	if (hook?.state !== 'seen') throw new Error('the sample saw none');
	return {state: 'seen', facts: {...hook.facts, ...change}};
};
const PACKAGE = (seen({}) as Extract<HookLook, {state: 'seen'}>).facts.sglang as ImportedPackage;
const PLAIN = {path: '/root/sglang/python/sglang/srt/models/deepseek_v2.py', sha256: 'a1', marked: false};
const ask = (id: string, situation: Situation, argument: string | null = null) =>
	operationEntry(id)?.plan(situation, argument) ?? {refused: 'no such operation'};
const refusal = (id: string, situation: Situation, argument: string | null = null) => {
	const plan = ask(id, situation, argument);
	return isRefusal(plan) ? plan.refused : `planned: ${plan.title}`;
};
const planned = (id: string, situation: Situation, argument: string | null = null): Plan => {
	const plan = ask(id, situation, argument);
	if (isRefusal(plan)) throw new Error(plan.refused);
	return plan;
};
const scripts = (plan: Plan) => plan.steps.map(step => (step.kind === 'wait' ? `wait ${step.id}` : step.script));

test('stop-service stops without waiting, disables, and names what brought it back', () => {
	const plan = planned('stop-service', here());
	expect(scripts(plan)).toEqual([`systemctl stop --no-block -- ${UNIT}`, `systemctl disable -- ${UNIT}`, 'wait gone']);
	expect({tier: plan.tier, word: plan.confirmWord, inverse: plan.inverse}).toEqual({
		tier: 2,
		word: 'int4',
		inverse: `systemctl enable --now -- ${UNIT}`,
	});
	expect(plan.targets[0]).toMatchObject({kind: 'unit', identity: UNIT});
	expect(plan.warnings.join(' ')).toContain('comes back at boot');
});

test('a unit that a link of its package wants beside the one below /etc is held by one plan', () => {
	const both = service({wantedOutside: ['multi-user.target']});
	const plan = planned('stop-service', here({services: {manager: 'systemd', units: [both]}}), UNIT);
	const directory = `/etc/systemd/system/${UNIT}.d`;
	expect(plan.steps.map(step => (step.kind === 'wait' ? step.id : [step.id, step.says, step.script]))).toEqual([
		[
			'stop',
			`stop ${UNIT} (without waiting, so that a lost link changes nothing)`,
			`systemctl stop --no-block -- ${UNIT}`,
		],
		['disable', `take ${UNIT} out of the boot`, `systemctl disable -- ${UNIT}`],
		[
			'drop-in',
			`block ${UNIT} with a drop-in whose condition does not hold, since \`disable\` does not hold it: a link from multi-user.target outside /etc wants it`,
			[
				`mkdir -p -- ${directory} || exit`,
				`printf '[Unit]\\nConditionPathExists=%s\\n' /etc/allow-${UNIT} >${directory}/50-blocked.part && mv -f -- ${directory}/50-blocked.part ${directory}/50-blocked.conf || { rm -f -- ${directory}/50-blocked.part; exit 1; }`,
				'systemctl daemon-reload',
			].join('\n'),
		],
		'gone',
	]);
	expect(plan.inverse).toBe(
		`rm -f -- ${directory}/50-blocked.conf; systemctl daemon-reload; systemctl enable -- ${UNIT}; systemctl start -- ${UNIT}`,
	);
});

test('a unit whose file is gone is stopped, and no way back is promised', () => {
	const gone = service({loadState: 'not-found', unitFileState: '', wantedBy: [], fragmentPath: ''});
	const plan = planned('stop-service', here({services: {manager: 'systemd', units: [gone]}}), UNIT);
	expect([plan.steps.map(({id}) => id), plan.inverse]).toEqual([['stop', 'gone'], null]);
});

test('a unit name with a leading dash or quotes cannot become an option or a command', () => {
	const odd = "-x';reboot.service";
	const plan = planned('stop-service', here({services: {manager: 'systemd', units: [service({unit: odd})]}}), odd);
	expect(scripts(plan)[0]).toBe(`systemctl stop --no-block -- '-x'\\'';reboot.service'`);
});

test.each([
	[
		'no look at the services yet',
		'stop-service',
		here({}, {}),
		{services: undefined},
		'the services have not been seen yet',
	],
	[
		'nobody to stop',
		'stop-service',
		here({services: {manager: 'systemd', units: []}}),
		{},
		'no unwanted service runs or comes back at boot',
	],
	[
		'no manager',
		'stop-service',
		here({services: {manager: 'absent', units: []}}),
		{},
		'no service manager answers on this host (absent)',
	],
	['nothing holds a GPU', 'free-gpus', here(NOBODY), {}, 'nothing holds a GPU'],
	[
		'holders of a running unit',
		'free-gpus',
		here(),
		{},
		`nothing to end (8 of ${UNIT}: stop that first, a kill alone comes back)`,
	],
	[
		'the files unseen',
		'restore-files',
		here({}, {files: [{source: '/a', destination: '/tmp/a', sha256: null, mode: '644'}]}),
		{files: undefined},
		'the files have not been seen yet, or the last look failed',
	],
	[
		'nothing configured to restore',
		'restore-files',
		here(),
		{},
		'no file to restore is configured (extraction.script or files)',
	],
	[
		'a running extraction',
		'clear-dumps',
		here({extraction: {...sampleFacts.extraction, run: running(true)}}),
		{},
		'an extraction is running: its dumps are not stale',
	],
	[
		'an unknown server',
		'clear-dumps',
		here(),
		{server: undefined},
		'whether a server is running is not known: its dumps must not be moved',
	],
	['a server that is not ready', 'run-extractor', here(), {}, 'the server is not ready (none, none): launch it first'],
	[
		'an extraction already',
		'run-extractor',
		here({extraction: {...sampleFacts.extraction, run: running(true)}}),
		{},
		'an extraction is already running (pid 77)',
	],
	['no extraction to stop', 'stop-extractor', here(), {}, 'no extraction is known to run'],
])('%s: refused in words', (_name, id, situation, gone, words) => {
	const facts = {...situation.facts, ...Object.fromEntries(Object.keys(gone).map(key => [key, null]))};
	expect(refusal(id, {...situation, facts})).toBe(words);
});

function running(alive: boolean) {
	return {
		source: 'progress' as const,
		state: 'extracting' as const,
		pid: 77,
		startTicks: 770,
		alive,
		extracted: 5,
		skipped: 3,
		errors: 0,
		tokens: 10,
		samplesPerSecond: 1,
		tokensPerSecond: 10,
		bytesPerSecond: 10,
		etaMs: null,
		lastIndex: 5,
		updatedAt: NOW,
		message: null,
	};
}

test('free-gpus ends orphans by identity, and leaves daemons, this console and pids of other namespaces alone', () => {
	const orphan = process(4001, {name: 'python3', owner: {kind: 'none'}, parentPid: 1});
	const daemon = process(4002, {name: 'nvidia-persiste', owner: {kind: 'unit', unit: 'nvidia-persistenced.service'}});
	const own = process(4003, {name: 'node', parentPid: 4004});
	const holder = (pid: number, startTicks: number | null) => ({
		pid,
		startTicks,
		memory: [{gpuUuid: 'GPU-0', usedBytes: known(1e9)}],
		devices: ['nvidia0'],
		driverName: 'x',
	});
	const situation = here({
		processes: {...sampleFacts.processes, processes: [process(1, {name: 'systemd'}), orphan, daemon, own]},
		holders: {
			...sampleFacts.holders,
			holders: [
				holder(4001, orphan.startTicks),
				holder(4002, daemon.startTicks),
				holder(4003, own.startTicks),
				holder(31_337, null),
			],
		},
		services: {manager: 'systemd', units: []},
	});
	const plan = planned('free-gpus', {
		...situation,
		own: {bootId: situation.facts.processes?.last?.value.bootId ?? '', pid: 4003, startTicks: own.startTicks},
	});
	expect(plan.targets.map(({identity}) => identity)).toEqual([`4001@${orphan.startTicks}`]);
	expect(plan.excluded.map(({says}) => says.replace(/.*: /, ''))).toEqual([
		'infrastructure of the driver',
		'this console or what it was started from',
		'look from the hypervisor',
	]);
	expect(plan.steps.map(({id}) => id)).toEqual(['term', 'grace', 'kill', 'freed']);
	expect(scripts(plan)[0]).toContain(`sig 4001 ${orphan.startTicks}`);
	expect(scripts(plan)[0]).not.toMatch(/sig (4002|4003|31337)/);
});

test.each([
	['held cards', {}, /8 process\(es\) hold the cards: free them first/],
	['a running unwanted unit', {}, new RegExp(`${UNIT} is not stopped`)],
	['a hung mount', {}, /\/data does not answer/],
	['stale dumps', {}, /1 stale request\(s\)/],
	[
		'a lost card',
		{gpus: {...sampleFacts.gpus, lost: [{busId: '0b:00', says: 'Unknown Error', advice: ''}]}},
		/card lost: 0b:00/,
	],
	['too few cards', {gpus: {cards: [gpu(0)], lost: [], moreAt: 0}}, /1 of 8 cards answer/],
	[
		'a card that needs a reset',
		{gpus: {cards: sampleFacts.gpus.cards.map(card => ({...card, needsReset: card.index === 2})), lost: [], moreAt: 0}},
		/card 2 needs a reset/,
	],
	[
		'a taken port',
		{server: {...sampleFacts.server, portOwner: known({pid: 2200, name: 'python3'})}},
		/port 8000 is taken by python3 \(pid 2200\)/,
	],
	[
		'a lost patch',
		{files: {...sampleFacts.files, hook: seen({sglang: {...PACKAGE, source: PLAIN}})}},
		/nothing would dump hidden states/,
	],
	[
		'stale bytecode',
		{
			files: {
				...sampleFacts.files,
				hook: seen({sglang: {...PACKAGE, bytecode: {path: '/x.pyc', state: 'fits', marked: false}}}),
			},
		},
		/bytecode \/x\.pyc is run instead of the source and lacks the patch: remove it/,
	],
	[
		'a patch in another copy',
		{
			files: {
				...sampleFacts.files,
				hook: seen({
					sglang: {...PACKAGE, source: PLAIN},
					tree: {...PLAIN, path: '/tree.py', sha256: 'd4', marked: true},
				}),
			},
		},
		/\/tree\.py is not the copy that is imported: the patch there does nothing/,
	],
	[
		'a Python that does not answer',
		{files: {...sampleFacts.files, hook: {state: 'unknown' as const, why: 'python3 did not answer'}}},
		/what would dump hidden states is not known: python3 did not answer \(mend that/,
	],
	[
		'a missing shard',
		{contents: {weights: {...WEIGHTS, missing: ['model-7.safetensors']}, dataset: null}},
		/the model lacks 1 shard\(s\): model-7/,
	],
])('launch-server is refused over %s', (_name, change, words) => {
	expect(refusal('launch-server', here(change))).toMatch(words);
});

const HOOK_SERVER = {
	...(sampleTarget.server as NonNullable<Target['server']>),
	env: {PYTHONPATH: '/data/relight', RELIGHT_HS_DUMP_DIR: '/dev/shm/sglang_hs'},
	args: ['--forward-hooks', '[{"hook_factory":"relight_hs:hook","config":{"slot":"write","layers":[2,30,58]}}]'],
};
const HOOK_FILES = [{source: '/hook.py', destination: '/data/relight/relight_hs.py', sha256: HOOK_SHA256, mode: '644'}];
const bare = {...sampleFacts.files, hook: seen({sglang: {...PACKAGE, source: PLAIN, version: '0.5.12'}})};
const installed = {
	...bare,
	hook: seen({
		sglang: {...PACKAGE, source: PLAIN, version: '0.5.12'},
		hook: {importable: {path: '/data/relight/relight_hs.py', sha256: HOOK_SHA256, marked: false}, placed: null},
	}),
};

test('the dump path of patch or hook is the one that the extractor reads, or nothing is launched', () => {
	const ready = {...NOBODY, ...NO_DUMPS};
	const patched = {...HOOK_SERVER, args: [], env: {SGLANG_HS_DUMP_DIR: '/tmp/other'}};
	expect(refusal('launch-server', here(ready, {server: patched}))).toBe(
		'SGLANG_HS_DUMP_DIR is /tmp/other, and the extractor reads /dev/shm/sglang_hs',
	);
	const hooked = {...HOOK_SERVER, env: {...HOOK_SERVER.env, RELIGHT_HS_DUMP_DIR: '/tmp/other'}};
	expect(refusal('launch-server', here({...ready, files: installed}, {server: hooked}))).toBe(
		'RELIGHT_HS_DUMP_DIR is /tmp/other, and the extractor reads /dev/shm/sglang_hs',
	);
	// Another package than the one that was asked for its flags.
	expect(planned('launch-server', here({...ready, files: installed}, {server: HOOK_SERVER})).warnings).toEqual([
		'flags not checked, because its source does not tell, and its help has not been asked yet',
	]);
	expect(refusal('launch-server', here({...ready, files: bare}, {server: HOOK_SERVER}))).toContain(
		'relight_hs.py is not installed',
	);
});

test('a patch at work has no warnings about a hook that nobody asked for, and an old bytecode of it has its own', () => {
	const ready = {...NOBODY, ...NO_DUMPS};
	expect(planned('launch-server', here(ready)).warnings).toEqual([]);
	const bytecode = {path: '/x.pyc', state: 'never checked' as const, marked: true};
	const files = {...sampleFacts.files, hook: seen({sglang: {...PACKAGE, bytecode}})};
	expect(planned('launch-server', here({...ready, files})).warnings).toEqual([
		'bytecode /x.pyc is never compared with its source: edits have no effect',
	]);
});

test('a recovery plans a launch with the hook that it will have restored; where nothing would dump it is not begun', () => {
	const launches = (situation: Situation) =>
		scripts(planned('recover', situation)).some(each => each.includes('systemd-run'));
	expect(launches(here({...SOUND, files: bare}, {server: HOOK_SERVER, files: HOOK_FILES, extraction: null}))).toBe(
		true,
	);
	const lost = here({...SOUND, files: bare}, {server: HOOK_SERVER, extraction: null});
	expect(refusal('recover', lost)).toContain(
		'the patched server is ready and dumps hidden states: relight_hs.py is not installed',
	);
	expect(launches({...lost, overrides: ['dump-way']})).toBe(true);
	const plain = {...sampleFacts.files, hook: seen({sglang: {...PACKAGE, source: PLAIN}})};
	expect(refusal('recover', here({...SOUND, files: plain}))).toContain(
		'the patched server is ready and dumps hidden states: nothing would dump hidden states',
	);
	// In its place, but PYTHONPATH leads elsewhere: putting it back mends nothing.
	const astray = {...HOOK_SERVER, env: {...HOOK_SERVER.env, PYTHONPATH: '/elsewhere'}};
	expect(
		refusal('recover', here({...SOUND, files: bare}, {server: astray, files: HOOK_FILES, extraction: null})),
	).toMatch(/dumps hidden states: .*PYTHONPATH/);
});

test('launch-server sends argv and environment as they are configured, and leaves a record', () => {
	const plan = planned('launch-server', here({...NOBODY, ...NO_DUMPS}));
	const id = NOW.toString(36);
	expect(plan.steps.map(step => step.id)).toEqual(['start', 'record', 'ready', 'note', 'canary', 'proved', 'serving']);
	expect(scripts(plan)[0]).toBe(
		`mkdir -p /data/eagle3/synth_100k/logs /dev/shm/sglang_hs || exit 1\n` +
			`systemd-run --no-ask-password --unit=kimi-${id} -p StandardOutput=append:/data/eagle3/synth_100k/logs/kimi-${id}.log -p StandardError=append:/data/eagle3/synth_100k/logs/kimi-${id}.log -p KillMode=control-group --setenv=SGLANG_HS_DUMP_DIR=/dev/shm/sglang_hs -- /root/ml-env/bin/python3 -m sglang.launch_server --model-path /shared/kimi-k2.5-int4 --tp-size 8 --port 8000`,
	);
	expect(scripts(plan)[1]).toContain('relight-launch-kimi.json');
});

test('systemd expands a dollar, so each is doubled; a shell start quotes it', () => {
	const server = {...(sampleTarget.server as NonNullable<Target['server']>), args: ['--name', '$HOME %n']};
	const withManager = planned('launch-server', here({...NOBODY, ...NO_DUMPS}, {server}));
	expect(scripts(withManager)[0]).toContain(`'$$HOME %n'`);
	const without = planned(
		'launch-server',
		here({...NOBODY, ...NO_DUMPS, services: {manager: 'absent', units: []}}, {server}),
	);
	expect(scripts(without)[0]).toContain(`setsid -f sh -c 'echo $$ >`);
	expect(scripts(without)[0]).toContain(`'$HOME %n'`);
});

test('a signal goes to one identity and never to a protected process', () => {
	const bash = planned('signal', here(), '9300@93000:TERM');
	expect({word: bash.confirmWord, steps: bash.steps.map(({id}) => id)}).toEqual({
		word: '9300',
		steps: ['signal', 'ended'],
	});
	expect(refusal('signal', here(), '501@5010:KILL')).toMatch(/sshd is protected: SSH server/);
	expect(refusal('signal', here(), '9300@1:KILL')).toBe('that process is gone, or its pid is somebody else now');
});

test('a recovery shows every command that it can know now, and says what it cannot', () => {
	const plan = planned('recover', here(SOUND));
	expect({tier: plan.tier, word: plan.confirmWord}).toEqual({tier: 3, word: 'kpro6/ct129'});
	const shown = scripts(plan).join('\n');
	for (const part of ['systemctl stop', 'systemctl disable', 'mv --', 'systemd-run', '/generate'])
		expect(shown).toContain(part);
	expect(refusal('recover', {...here(), facts: {...here().facts, services: null}})).toBe(
		'no unwanted service runs or comes back at boot: services not known: no look has ended yet; /data does not answer',
	);
});

test('a recovery that would come to what no operation mends is not begun, and names it', () => {
	const refused = (change: Partial<FactValues>) => refusal('recover', here({...SOUND, ...change}));
	const {mounts} = SOUND as {mounts: FactValues['mounts']};
	const data = (change: Partial<(typeof mounts.mounts)[number]>) => ({
		mounts: {...mounts, mounts: mounts.mounts.map(mount => (mount.path === '/data' ? {...mount, ...change} : mount))},
	});
	const server = 'the patched server is ready and dumps hidden states';
	expect(refused({mounts: sampleFacts.mounts})).toBe(`${server}: /data does not answer`);
	expect(refused(data({expected: true, unexpected: 'volume b, expected a'}))).toBe(
		`${server}: /data: volume b, expected a`,
	);
	const portOwner = known({pid: 31, name: 'nginx'});
	expect(refused({server: {...sampleFacts.server, portOwner}})).toBe(`${server}: port 8000 is taken by nginx (pid 31)`);
	expect(refused(data({size: {...ROOMY, availableBytes: 5e8}}))).toBe(
		'the extraction is running: 500.0 MB are free on /data, 2.58 TB are needed for the remaining samples',
	);
});

test('what a control group has frozen is left alone by free-gpus: thawed first, and never said to wait for storage', () => {
	const awake = process(4001, {owner: {kind: 'none'}, parentPid: 1});
	const frozen = process(4002, {owner: {kind: 'none'}, parentPid: 1, state: 'D', waitChannel: '__refrigerator'});
	const holder = ({pid, startTicks}: typeof awake) => ({
		pid,
		startTicks,
		memory: [],
		devices: ['nvidia0'],
		driverName: 'x',
	});
	const holding = (...each: readonly (typeof awake)[]): Partial<FactValues> => ({
		processes: {...sampleFacts.processes, processes: [process(1, {name: 'systemd'}), ...each]},
		holders: {...sampleFacts.holders, holders: each.map(holder)},
		services: {manager: 'systemd', units: []},
	});
	const thaw = 'frozen by its control group: thaw that first';
	expect(refusal('free-gpus', here(holding(frozen)))).toBe(`nothing to end (pid 4002 is ${thaw})`);
	const plan = planned('free-gpus', here(holding(awake, frozen)));
	expect(plan.targets.map(({identity}) => identity)).toEqual([`4001@${awake.startTicks}`]);
	expect(plan.excluded.map(({says}) => says)).toEqual([expect.stringMatching(new RegExp(`^pid 4002 .*: ${thaw}$`))]);
	const said = (id: string, one: typeof awake) => {
		const step = planned(id, here(holding(awake)), id === 'signal' ? `4001@${awake.startTicks}:KILL` : null).steps.find(
			({kind}) => kind === 'wait',
		);
		return step?.kind === 'wait' ? step.until(here(holding(one)), NOW).words : '';
	};
	const later = {...awake, state: 'D', waitChannel: '__refrigerator', killPending: true};
	expect([said('free-gpus', later), said('signal', later)]).toEqual([`pid 4001 is ${thaw}`, thaw]);
	expect(refusal('signal', here(holding(later)), `4001@${awake.startTicks}:KILL`)).toBe(
		`SIGKILL is pending already: it is ${thaw}`,
	);
});

test('every signal by identity goes through the configured Python, and by the shell where there is none', () => {
	const one = process(4001, {owner: {kind: 'none'}, parentPid: 1});
	const record = {...sampleFacts.server.record, launchId: 'a', bootId: 'b', pid: 4001, startTicks: one.startTicks};
	const facts: Partial<FactValues> = {
		processes: {...sampleFacts.processes, processes: [process(1, {name: 'systemd'}), one]},
		holders: {
			...sampleFacts.holders,
			holders: [{pid: 4001, startTicks: one.startTicks, memory: [], devices: ['nvidia0'], driverName: 'x'}],
		},
		services: {manager: 'systemd', units: []},
	};
	const alive = {...facts, extraction: {...sampleFacts.extraction, run: running(true)}};
	const up: Partial<FactValues> = {
		...facts,
		extraction: {...sampleFacts.extraction, run: null},
		server: {
			...sampleFacts.server,
			process: 'alive',
			record: {...record, unit: null, port: 1, argv: [], log: '', at: 0},
		},
	};
	const asks = '/root/ml-env/bin/python3 -I -S - ';
	const signals = (plan: Plan) =>
		plan.steps.flatMap(step => (step.kind === 'run' && step.signals ? [step.script] : []));
	for (const [id, change, argument, count] of [
		['free-gpus', facts, null, 2],
		['signal', facts, `4001@${one.startTicks}:TERM`, 1],
		['stop-extractor', alive, null, 1],
		['stop-server', up, null, 2],
	] as const) {
		const sent = signals(planned(id, here(change), argument));
		expect([id, sent.length, sent.every(script => script.includes(asks))]).toEqual([id, count, true]);
		if (id === 'stop-server') continue;
		expect(signals(planned(id, here(change, {server: null}), argument)).join()).not.toMatch(/RELIGHT|pidfd/);
	}
});

test('free-gpus counts a zombie with live threads as one that still holds its card', () => {
	const headless = process(4001, {name: 'python3', state: 'Z', threads: 9, owner: {kind: 'none'}, parentPid: 1});
	const memory = [{gpuUuid: 'GPU-0', usedBytes: known(1e9)}];
	const holder = {pid: 4001, startTicks: headless.startTicks, memory, devices: [], driverName: 'x'};
	const situation = here({
		processes: {...sampleFacts.processes, processes: [headless]},
		holders: {...sampleFacts.holders, holders: [holder]},
		services: {manager: 'systemd', units: []},
	});
	const grace = planned('free-gpus', situation).steps.find(step => step.id === 'grace');
	if (grace?.kind !== 'wait') throw new Error('no grace');
	expect(grace.until(situation, NOW)).toEqual({
		state: 'pending',
		words: 'pid 4001: the first thread ended, others live on and hold the card',
	});
	const ended = {...headless, threads: 1};
	const after = here({processes: {...sampleFacts.processes, processes: [ended]}});
	expect(grace.until(after, NOW).state).toBe('met');
});

test('a server that is starting is watched and proved, and no second one is launched; a ready one is left alone', () => {
	const record = {
		launchId: 'abc',
		bootId: 'boot',
		pid: 77,
		startTicks: 7,
		unit: 'kimi-abc.service',
		port: 8000,
		argv: [],
		log: '/l',
		at: NOW,
	};
	const server = {...sampleFacts.server, record, process: 'alive' as const, phase: 'loading' as const};
	const plan = planned('launch-server', here({server}));
	expect(plan.title).toBe('watch the server that was launched (pid 77) come up on port 8000, and prove it');
	expect(plan.steps.map(step => step.id)).toEqual(['ready', 'note', 'canary', 'proved', 'serving']);
	const recovery = planned('recover', here({...NOBODY, ...NO_DUMPS, ...SOUND, server}));
	expect(scripts(recovery).join()).not.toContain('sglang.launch_server');
	expect(recovery.steps.map(step => step.id)).toContain('canary');
	expect(planned('launch-server', here({server: {...server, phase: 'ready'}})).title).toBe(plan.title);
	expect(refusal('launch-server', here({server: {...server, phase: 'ready', proved: true}}))).toContain(
		'a server is already running (pid 77, ready)',
	);
});

test('a phase of a start is held against the last start, and stalls no sooner than that took twice', () => {
	const record = {...sampleFacts.server.record, launchId: 'abc', bootId: 'b', pid: 77, startTicks: 7, unit: null};
	const server = {
		...sampleFacts.server,
		record: {...record, port: 8000, argv: [], log: '/l', at: NOW},
		process: 'alive' as const,
		phase: 'loading' as const,
		shards: {done: 31, total: 64},
		phaseSince: NOW - 1_000_000,
	};
	const verdict = (change: Partial<FactValues['server']>) => {
		const step = planned('launch-server', here({server})).steps[0];
		if (step?.kind !== 'wait') throw new Error('no look');
		return step.until(here({server: {...server, ...change}}), NOW);
	};
	const stalled = 'no progress in phase loading 31/64 shards for 1000 s';
	expect(verdict({})).toEqual({state: 'failed', words: stalled});
	expect(verdict({lastStart: {phaseMs: {loading: 130_000}, topology: null}})).toEqual({
		state: 'failed',
		words: `${stalled} · last time 2 min 10 s`,
	});
	expect(verdict({lastStart: {phaseMs: {loading: 600_000}, topology: null}})).toEqual({
		state: 'pending',
		words: 'loading 31/64 shards · last time 10 min 0 s',
	});
	expect(verdict({lastStart: {phaseMs: {memory: 600_000}, topology: null}})).toEqual({state: 'failed', words: stalled});
});

test('a launch gets what whole states need, shown as changes to its line; a flag that this SGLang does not have refuses', () => {
	const server = {...(sampleTarget.server as NonNullable<Target['server']>), protect: true};
	const ready = {...NOBODY, ...NO_DUMPS};
	const plan = planned('launch-server', here(ready, {server}));
	expect(scripts(plan)[0]).toContain('--tp-size 8 --chunked-prefill-size -1 --disable-radix-cache');
	expect(plan.warnings[0]).toBe('+ --chunked-prefill-size -1: a chunk has the rows of its part alone');
	expect(scripts(planned('launch-server', here(ready, {server, dump: null})))[0]).not.toContain('--chunked');
	const flags = ['--model-path', '--tp-size', '--port'];
	const files = {...sampleFacts.files, hook: seen({sglang: {...PACKAGE, flags}})};
	const odd = {...server, args: ['--nonsense']};
	// Its source does not tell, its own help does.
	expect(refusal('launch-server', here(ready, {server: odd}))).toBe(
		'this SGLang has no --nonsense: take it out of server.args',
	);
	const asked = {...sampleFacts.flags, flags: null, why: 'python3 -m sglang.launch_server --help: exit 1'};
	expect(planned('launch-server', here({...ready, flags: asked}, {server: odd})).warnings).toContain(
		'flags not checked, because python3 -m sglang.launch_server --help: exit 1',
	);
	expect(refusal('launch-server', here({...ready, files}, {server: odd}))).toBe(
		'this SGLang has no --nonsense: take it out of server.args',
	);
});
