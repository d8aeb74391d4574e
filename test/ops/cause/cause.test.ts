import {describe, expect, it} from 'vitest';
import {allCauses, type CauseLink, causeOfCard, causeOfProcess} from '../../../src/ops/cause/cause.ts';
import type {FactValues} from '../../../src/ops/facts.ts';
import {ownerOf} from '../../../src/ops/formats/cgroup.ts';
import {known} from '../../../src/ops/probes/probe.ts';
import type {Process} from '../../../src/ops/probes/processes.ts';
import {process, sampleFacts, UNIT} from '../../ui/support/sample-facts.ts';
import {factsOf} from '../../ui/support/sample-state.ts';

const words = (links: readonly CauseLink[]) =>
	links.map(({step, says, known: told}) => `${step}${told ? '' : '?'}: ${says}`);
const facts = (change: Partial<FactValues> = {}) => factsOf({...sampleFacts, ...change});
const withTable = (processes: readonly Process[], change: Partial<FactValues> = {}) =>
	facts({...change, processes: {...sampleFacts.processes, processes}});
const why = (one: Process, table: readonly Process[], change: Partial<FactValues> = {}) =>
	words(causeOfProcess(one, withTable(table, change)));

describe('the chain of a card', () => {
	it('goes from memory to what brings the holder back at boot, and ends with the fix', () => {
		expect(words(causeOfCard('GPU-0', facts()))).toEqual([
			'held: GPU 0 01:00',
			'process: pid 843 VLLM::Worker_TP (start 8430)',
			'note: VLLM::Worker_TP0',
			'ancestor: parent pid 812 vllm',
			`owner: ${UNIT} running, Restart=on-failure`,
			'boot: comes back at boot: enabled',
			'boot: comes back at boot: wanted by multi-user.target',
			'note: a kill alone returns at the next boot',
			'fix: stop it and keep it from the boot: stop-service',
		]);
	});

	it('says that it cannot tell rather than that nobody holds it', () => {
		const {holders} = sampleFacts;
		const hidden = facts({holders: {...holders, holders: [], driverList: 'unresolvable'}});
		expect(words(causeOfCard('GPU-0', hidden))[1]).toBe(
			'process?: the driver lists pids that are not visible from here: look from the hypervisor',
		);
		expect(words(causeOfCard('GPU-0', {...facts(), holders: null}))[1]).toBe(
			'process?: who holds it is unknown: the last look failed or has not come',
		);
		const elsewhere = {
			pid: 70,
			startTicks: null,
			memory: [{gpuUuid: 'GPU-0', usedBytes: known(5)}],
			devices: [],
			driverName: 'x',
		};
		expect(words(causeOfCard('GPU-0', facts({holders: {...holders, holders: [elsewhere]}})))[1]).toBe(
			'process?: pid 70 x is not visible from here: look from the hypervisor',
		);
	});

	it('lists every card that holds memory and every stuck process', () => {
		expect(allCauses(facts()).map(({of}) => of)).toEqual([
			...[0, 1, 2, 3, 4, 5, 6, 7].map(index => `gpu ${index}`),
			'pid 9120',
		]);
	});
});

describe('what keeps a process', () => {
	const worker = (pid: number, change: Partial<Process>) => process(pid, {name: 'VLLM::Worker_TP', ...change});

	it('workers that outlived their front process: one in a container scope, one in no unit, both orphans', () => {
		const id = '0123456789abcdef'.repeat(4);
		const inside = worker(7001, {owner: ownerOf(`0::/system.slice/docker-${id}.scope\n`)});
		const outside = worker(7002, {owner: ownerOf('0::/\n')});
		const table = [inside, outside];
		expect(why(inside, table).slice(1)).toEqual([
			'owner: docker 0123456789ab',
			'boot?: whether it comes back is unknown: no container engine answered',
			'fix: stop it with its engine: docker stop 0123456789ab',
		]);
		expect(why(outside, table).slice(1)).toEqual([
			'owner: an orphan: its parent ended, and no unit or container keeps it',
			'boot: nothing seen starts it at boot (units, cron @reboot, rc.local)',
			'fix: end it: free-gpus, or a signal',
		]);
		const containers = [{id, name: 'vllm', policy: 'unless-stopped'}];
		expect(why(inside, table, {autostart: {lines: [], containers}}).slice(1)).toEqual([
			'owner: docker 0123456789ab (vllm)',
			'boot: comes back at boot: restart policy "unless-stopped"',
			'fix: docker update --restart=no 0123456789ab && docker stop 0123456789ab',
		]);
	});

	it('started by hand in a tmux pane, with all its parents', () => {
		const tmux = process(400, {name: 'tmux: server', owner: {kind: 'session', session: '12'}});
		const shell = process(410, {name: 'bash', parentPid: 400, owner: {kind: 'session', session: '12'}});
		const script = process(420, {name: 'python3', parentPid: 410, owner: {kind: 'session', session: '12'}});
		expect(why(script, [tmux, shell, script]).slice(1)).toEqual([
			'ancestor: parent pid 410 bash',
			'ancestor: parent pid 400 tmux: server',
			'owner: started from a tmux pane (pid 400), login session 12',
			'boot: nothing seen starts it at boot (units, cron @reboot, rc.local)',
			'fix: end it: free-gpus, or a signal',
		]);
	});

	it('a @reboot line that names its script brings it back', () => {
		const one = process(500, {name: 'python3', owner: {kind: 'none'}});
		const lines = [
			{file: '/etc/cron.d/llm', line: '@reboot root /usr/bin/python3 /opt/serve.py --token=abc'},
			{file: '/etc/rc.local', line: 'python3 /opt/other.py'},
		];
		const change = {
			autostart: {lines, containers: null},
			'command-lines': {lines: new Map([['500@5000', '/usr/bin/python3 /opt/serve.py']])},
		};
		expect(why(one, [one], change).slice(-2)).toEqual([
			'boot: comes back at boot: /etc/cron.d/llm: @reboot root /usr/bin/python3 /opt/serve.py --token=***',
			'fix: take the line out of /etc/cron.d/llm, then end it',
		]);
	});

	it('unknown where nothing was read', () => {
		const one = process(500, {owner: {kind: 'none'}});
		const unread = {...withTable([one]), autostart: null, services: null};
		expect(words(causeOfProcess(one, unread)).at(-1)).toBe(
			'boot?: what starts it at boot is unknown: cron and rc.local were not read',
		);
		const inUnit = process(501, {owner: {kind: 'unit', unit: 'a.service'}});
		expect(words(causeOfProcess(inUnit, unread)).at(-1)).toBe(
			'boot?: whether it comes back is unknown: the unit has not been seen, or the last look failed',
		);
	});
});
