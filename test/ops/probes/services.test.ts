import {describe, expect, it} from 'vitest';
import {readShow, spanMs} from '../../../src/ops/formats/systemctl-show.ts';
import {
	bootVerdict,
	maskRefused,
	runState,
	type Service,
	services,
	toService,
} from '../../../src/ops/probes/services.ts';
import {answerOf, contextOf, fixture, look, makeTree, pathWith} from './support.ts';

const shown = (name: string, changes: Partial<Service> = {}): Service => {
	const [block] = readShow(fixture(`systemctl/${name}`));
	if (!block) throw new Error(name);
	return {...toService(block), ...changes};
};

const IDLE: Service = {
	unit: 'x.service',
	loadState: 'loaded',
	activeState: 'inactive',
	subState: 'dead',
	result: 'success',
	mainPid: 0,
	controlGroup: '',
	unitFileState: 'disabled',
	preset: 'disabled',
	fragmentPath: '/usr/lib/systemd/system/x.service',
	dropInPaths: [],
	wantedBy: [],
	wantedOutside: [],
	requiredBy: [],
	triggeredBy: [],
	restart: 'no',
	restarts: 0,
	stopLimitMs: 90_000,
	job: '',
	needsReload: false,
	execStart: '',
	description: '',
	pids: [],
	unwanted: false,
};

const VLLM: Service = {
	...IDLE,
	unit: 'vllm-example.service',
	activeState: 'active',
	subState: 'running',
	mainPid: 1402,
	controlGroup: '/system.slice/vllm-example.service',
	unitFileState: 'enabled',
	preset: 'enabled',
	fragmentPath: '/etc/systemd/system/vllm-example.service',
	wantedBy: ['multi-user.target'],
	restart: 'always',
	execStart:
		'{ path=/opt/vllm/bin/vllm ; argv[]=/opt/vllm/bin/vllm serve /shared/model --gpu-memory-utilization=0.95 ; ignore_errors=no ; start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }',
	description: 'vLLM server (a=b)',
	pids: [1402, 1455],
	unwanted: true,
};

const OLD: Service = {
	...IDLE,
	unit: 'sglang-old.service',
	unitFileState: 'static',
	fragmentPath: '/usr/lib/systemd/system/sglang-old.service',
	dropInPaths: [
		'/etc/systemd/system/sglang-old.service.d/10-a.conf',
		'/etc/systemd/system/sglang-old.service.d/20-b.conf',
	],
	triggeredBy: ['sglang-old.timer'],
	stopLimitMs: null,
	description: 'old one',
};

describe('services', () => {
	const sections = {
		listed: '0\nvllm-example.service loaded active running vLLM\n',
		files: 'vllm-example.service enabled enabled\n',
		show: fixture('systemctl/252-show-two-units.txt'),
		links: '/etc/../usr/lib/systemd/system/*.wants/vllm-example.service\n',
		groups: '/system.slice/vllm-example.service 1455 1402\n',
	};
	const target = {unwanted: ['vllm-*']};

	it('reads units in whatever order systemd prints their properties', () => {
		expect(services.parse(answerOf(sections), contextOf({target}))).toEqual({manager: 'systemd', units: [VLLM, OLD]});
		const reversed = sections.show
			.split('\n\n')
			.map(block => block.trim().split('\n').reverse().join('\n'))
			.join('\n\n');
		expect(services.parse(answerOf({...sections, show: reversed}), contextOf({target}))).toEqual({
			manager: 'systemd',
			units: [VLLM, OLD],
		});
	});

	it('tells "no such units" from "nobody to ask" and from "no bus"', () => {
		const parse = (listed: string, files = '') =>
			services.parse(answerOf({listed, files, show: '', links: '', groups: ''}), contextOf({target}));
		expect(parse('0\n')).toEqual({manager: 'systemd', units: []});
		expect(parse("127\ntimeout: failed to run command 'systemctl'\n").manager).toBe('absent');
		expect(parse(`1\n${fixture('systemctl/252-not-booted.txt')}`).manager).toBe('absent');
		const bus = 'Failed to connect to bus: No such file or directory\n';
		expect(parse(`1\n${bus}`, 'vllm-a.service enabled enabled\nsglang@.service disabled -\n')).toEqual({
			manager: 'silent',
			units: [
				{
					...IDLE,
					unit: 'vllm-a.service',
					loadState: '',
					activeState: '',
					subState: '',
					result: '',
					unitFileState: 'enabled',
					preset: 'enabled',
					fragmentPath: '',
					restart: '',
					stopLimitMs: null,
					unwanted: true,
				},
			],
		});
		expect(parse('124\n').manager).toBe('silent');
	});

	it('leaves out units that do not exist, unless they still run or were asked for by name', () => {
		const gone = 'Id=sglang-gone.service\nLoadState=not-found\nActiveState=inactive\n';
		const running = gone.replace('inactive', 'active');
		const parse = (show: string, units: string[] = []) =>
			services.parse(answerOf({...sections, show}), contextOf({hints: {units}})).units.map(({unit}) => unit);
		expect([parse(gone), parse(running), parse(gone, ['sglang-gone.service'])]).toEqual([
			[],
			['sglang-gone.service'],
			['sglang-gone.service'],
		]);
	});

	it('on this machine says who is there to ask', async () => {
		const facts = await look(services, contextOf());
		expect(['systemd', 'absent', 'silent']).toContain(facts.manager);
	});

	it('for real, with a stand-in: patterns, hinted units and pids of the cgroup', async () => {
		const show = fixture('systemctl/252-show-two-units.txt');
		const tree = makeTree({
			'bin/systemctl': [
				'#!/bin/sh',
				'while [ "$1" ]; do case $1 in',
				'list-units) echo "vllm-example.service loaded active running vLLM server"; exit ;;',
				'list-unit-files) echo "vllm-example.service enabled enabled"; echo "sglang@.service disabled disabled"; exit ;;',
				'show) shift 4; echo "$*" >"${0%/*}/../asked"; cat "${0%/*}/../show"; exit ;;',
				'esac; shift; done',
			].join('\n'),
			show,
			'etc/x': '',
			'usr/lib/systemd/system/multi-user.target.wants/vllm-example.service': '',
			'usr/local/lib/systemd/system/lab.target.wants/vllm-example.service': '',
			'usr/lib/systemd/system/lab.target.wants/vllm-example.service': '',
			'usr/lib/systemd/system/lab.target.wants/another.service': '',
			'sys/fs/cgroup/system.slice/vllm-example.service/cgroup.procs': '1402\n',
			'sys/fs/cgroup/system.slice/vllm-example.service/inner/cgroup.procs': '1455\n',
		});
		const facts = await look(services, contextOf({target, hints: {units: ['by\\x2dhand.service']}}), {
			sys: `${tree.root}/sys`,
			etc: `${tree.root}/etc`,
			path: pathWith(tree.root),
		});
		const wantedOutside = ['lab.target', 'multi-user.target'];
		expect(facts).toEqual({manager: 'systemd', units: [{...VLLM, wantedOutside}, OLD]});
		const {readFileSync} = await import('node:fs');
		expect(readFileSync(`${tree.root}/asked`, 'utf8')).toBe('by\\x2dhand.service vllm-example.service\n');
		tree.remove();
	});

	it('knows spans of time', () => {
		expect(['1min 30s', '500ms', '1h 2min', 'infinity', '', 'soon'].map(spanMs)).toEqual([
			90_000,
			500,
			3_720_000,
			null,
			null,
			null,
		]);
	});
});

describe('a stopped main process is not a stopped unit', () => {
	it.each([
		['1-after-kill.show', 'will start again', 0, 0],
		['2-later.show', 'running', 76, 1],
		['3-stopping.show', 'stopping', 76, 0],
		['4-stop-ended.show', 'stopped by force', 0, 0],
		['5-stuck.show', 'stuck', 76, 0],
	])('%s: %s', (name, state, mainPid, restarts) => {
		const service = shown(name);
		expect([runState(service), service.mainPid, service.restarts]).toEqual([state, mainPid, restarts]);
	});

	it('tells the limit of a stop, for the countdown', () => {
		const {stopLimitMs, job} = shown('3-stopping.show');
		expect({stopLimitMs, job}).toEqual({stopLimitMs: 90_000, job: '276'});
	});

	it('a failed unit with a live process in its group is stuck', () => {
		expect(runState(shown('4-stop-ended.show', {pids: [76]}))).toBe('stuck');
	});

	it.each([
		[{activeState: 'inactive'}, 'stopped'],
		[{activeState: 'inactive', job: '12'}, 'starting'],
		[{activeState: 'activating', subState: 'start'}, 'starting'],
		[{activeState: 'failed', result: 'exit-code'}, 'stopped'],
		[{activeState: ''}, 'unknown'],
	])('%o', (changes, state) => {
		expect(runState({...IDLE, ...changes})).toBe(state);
	});
});

describe('mask is refused for a unit whose file is in /etc', () => {
	const service = shown('mask-refused.show');

	it('is not masked after a runtime mask: it is still loaded', () => {
		expect(service.loadState).toBe('loaded');
		expect(maskRefused(service)).toBe(
			'its file is in /etc/systemd/system: mask is refused there, and a runtime mask has no effect',
		);
		expect(maskRefused(IDLE)).toBeNull();
	});

	it('does not come back once disabled with nothing that wants it', () => {
		expect(bootVerdict(service)).toEqual({comesBack: 'no', notes: []});
	});
});

describe('will it come back at boot', () => {
	it.each<[string, Partial<Service>, ReturnType<typeof bootVerdict>]>([
		['enabled', VLLM, {comesBack: 'yes', because: ['enabled', 'wanted by multi-user.target']}],
		['a trigger', OLD, {comesBack: 'yes', because: ['started by sglang-old.timer']}],
		[
			'disabled, but linked in /usr/lib',
			{wantedBy: ['lab.target']},
			{comesBack: 'yes', because: ['wanted by lab.target']},
		],
		[
			'static and required',
			{unitFileState: 'static', requiredBy: ['a.service']},
			{comesBack: 'yes', because: ['required by a.service']},
		],
		['static', {unitFileState: 'static'}, {comesBack: 'no', notes: ['only starts when another unit asks for it']}],
		['generated', {unitFileState: 'generated'}, {comesBack: 'yes', because: ['generated at each boot']}],
		[
			'transient',
			{unitFileState: 'transient', wantedBy: []},
			{comesBack: 'no', notes: ['started by hand (transient)']},
		],
		[
			'masked',
			{loadState: 'masked', unitFileState: 'masked', wantedBy: ['a.target']},
			{comesBack: 'no', notes: ['masked']},
		],
		[
			'enabled for this boot',
			{unitFileState: 'enabled-runtime', wantedBy: ['a.target']},
			{comesBack: 'no', notes: ['enabled for this boot only']},
		],
		[
			'blocked by a drop-in',
			{...VLLM, dropInPaths: ['/etc/systemd/system/vllm-example.service.d/50-blocked.conf']},
			{comesBack: 'no', notes: ['blocked by /etc/systemd/system/vllm-example.service.d/50-blocked.conf']},
		],
		[
			'preset',
			{preset: 'enabled'},
			{comesBack: 'no', notes: ['its preset is enabled: a package upgrade or `preset-all` enables it again']},
		],
		[
			'file gone while it runs',
			{loadState: 'not-found', activeState: 'active', unitFileState: ''},
			{comesBack: 'no', notes: ['its unit file is gone; what runs ends with this boot']},
		],
		[
			'no word at all',
			{unitFileState: ''},
			{comesBack: 'unknown', because: 'systemd does not tell the state of its unit file'},
		],
	])('%s', (_, changes, verdict) => {
		expect(bootVerdict({...IDLE, ...changes})).toEqual(verdict);
	});
});
