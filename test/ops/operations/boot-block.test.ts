import {readFileSync} from 'node:fs';
import {describe, expect, it} from 'vitest';
import {bootBlocks} from '../../../src/ops/operations/boot-block.ts';
import {bootVerdict, toService} from '../../../src/ops/probes/services.ts';
import {service} from '../../ui/support/sample-facts.ts';
import {makeTree, pathWith, runScript} from '../probes/support.ts';

const UNIT = 'vllm-example.service';
const ETC_FILE = `/etc/systemd/system/${UNIT}`;
const LIB_FILE = `/usr/lib/systemd/system/${UNIT}`;
const unit = (change: Partial<ReturnType<typeof service>>) =>
	service({
		unit: UNIT,
		unitFileState: 'disabled',
		fragmentPath: ETC_FILE,
		wantedBy: [],
		wantedOutside: [],
		requiredBy: [],
		triggeredBy: [],
		dropInPaths: [],
		...change,
	});
const ids = (change: Partial<ReturnType<typeof service>>) => bootBlocks(unit(change), '/etc').map(({id}) => id);

describe('the gentlest way that holds', () => {
	it.each([
		['disabled already', {}, []],
		['a link below /etc', {unitFileState: 'enabled', wantedBy: ['multi-user.target']}, ['disable']],
		[
			'several links, some of which may stand elsewhere',
			{unitFileState: 'enabled', wantedBy: ['a.target', 'b.target']},
			['disable', 'drop-in'],
		],
		['a link outside /etc, file in /usr/lib', {fragmentPath: LIB_FILE, wantedBy: ['lab.target']}, ['mask']],
		['a link outside /etc, file in /etc, where mask is refused', {wantedBy: ['lab.target']}, ['drop-in']],
		[
			'links from one target, below /etc and outside',
			{unitFileState: 'enabled', wantedBy: ['multi-user.target'], wantedOutside: ['multi-user.target']},
			['disable', 'drop-in'],
		],
		[
			'the same, file in /usr/lib',
			{
				unitFileState: 'enabled',
				fragmentPath: LIB_FILE,
				wantedBy: ['multi-user.target'],
				wantedOutside: ['multi-user.target'],
			},
			['disable', 'mask'],
		],
		[
			'a link outside from a target that is not loaded',
			{unitFileState: 'enabled', wantedBy: ['multi-user.target'], wantedOutside: ['graphical.target']},
			['disable'],
		],
		['a timer', {triggeredBy: ['nightly.timer']}, ['drop-in']],
		[
			'somebody requires it: a mask would make that one fail',
			{fragmentPath: LIB_FILE, requiredBy: ['a.service']},
			['drop-in'],
		],
		['enabled and triggered', {unitFileState: 'enabled', triggeredBy: ['a.socket']}, ['disable', 'drop-in']],
		['generated', {unitFileState: 'generated', fragmentPath: '/run/systemd/generator/x'}, ['drop-in']],
	] as const)('%s', (_, change, expected) => {
		expect(ids(change as Partial<ReturnType<typeof service>>)).toEqual(expected);
	});

	it('says why', () => {
		const [block] = bootBlocks(unit({triggeredBy: ['nightly.timer'], requiredBy: ['llm.target']}), '/etc');
		expect(block?.says).toBe(
			`block ${UNIT} with a drop-in whose condition does not hold, since \`disable\` does not hold it: llm.target requires it, nightly.timer starts it`,
		);
	});
});

describe('for real, with a stand-in for the tool', () => {
	const systemctl = (wantedBy: string) =>
		`#!/bin/sh\necho "$@" >>"\${0%/*}/asked"\ncase $1 in show) printf '\\n%s\\n\\n' '${wantedBy}' ;; esac\n`;

	it('leaves a drop-in only where the link still stands after disable', async () => {
		for (const [left, blocked] of [
			['', false],
			['lab.target', true],
		] as const) {
			const tree = makeTree({'bin/systemctl': systemctl(left), 'etc/systemd/system/x': ''});
			const links = {unitFileState: 'enabled', wantedBy: ['multi-user.target', 'lab.target']};
			const [, block] = bootBlocks(unit(links), `${tree.root}/etc`);
			const answer = await runScript(block?.script ?? '', {path: pathWith(tree.root)});
			expect(answer).toMatchObject({status: 0, stderr: ''});
			const conf = `${tree.root}/etc/systemd/system/${UNIT}.d/50-blocked.conf`;
			const asked = readFileSync(`${tree.root}/bin/asked`, 'utf8').split('\n');
			expect(asked.includes('daemon-reload')).toBe(blocked);
			if (blocked) {
				expect(readFileSync(conf, 'utf8')).toBe(`[Unit]\nConditionPathExists=${tree.root}/etc/allow-${UNIT}\n`);
				const seen = toService(
					new Map([
						['Id', UNIT],
						['DropInPaths', conf],
						['WantedBy', 'lab.target'],
					]),
				);
				expect(bootVerdict(seen).comesBack).toBe('no');
				await runScript(block?.inverse ?? '', {path: pathWith(tree.root)});
			}
			expect(() => readFileSync(conf)).toThrow('ENOENT');
			tree.remove();
		}
	});

	it('blocks nothing while systemd does not answer', async () => {
		const tree = makeTree({'bin/systemctl': '#!/bin/sh\necho "Failed to connect to bus" >&2\nexit 1\n', 'etc/x': ''});
		const [, block] = bootBlocks(unit({unitFileState: 'enabled', wantedBy: ['a', 'b']}), `${tree.root}/etc`);
		const answer = await runScript(block?.script ?? '', {path: pathWith(tree.root)});
		expect(answer.status).toBe(1);
		expect(() => readFileSync(`${tree.root}/etc/systemd/system/${UNIT}.d/50-blocked.conf`)).toThrow('ENOENT');
		tree.remove();
	});
});
