import {existsSync, mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterAll, afterEach, beforeAll, beforeEach, expect} from 'vitest';
import type {Composition} from '../../bin/compose.ts';
import {fresh} from '../../src/ops/facts.ts';
import type {OperationId, Plan} from '../../src/ops/operations/operation.ts';
import {bootVerdict, runState, type Service} from '../../src/ops/probes/services.ts';
import {until} from '../support/until.ts';
import {all, lab} from './needs.ts';
import {act as actOn, openOn} from './operator.ts';
import {canRunSystemd, type SystemdBox, startSystemd} from './systemd-box.ts';

const ETC = '/etc/systemd/system';
const LIB = '/usr/lib/systemd/system';

const fuse = (): string | null => (existsSync('/dev/fuse') ? null : 'there is no /dev/fuse here');

const folder = mkdtempSync(join(tmpdir(), 'relight-units-'));
let box: SystemdBox;
let open: Composition;

beforeAll(async () => {
	if (canRunSystemd() === null) box = await startSystemd(['lab-*']);
});
beforeEach(async () => {
	if (!box) return;
	open = await openOn(box.target, folder);
});
afterEach(() => open?.engine.stop());
afterAll(async () => {
	await box?.close();
	rmSync(folder, {recursive: true, force: true});
});

/** Writes unit files and has systemd read them. */
function install(files: Readonly<Record<string, readonly string[]>>): void {
	for (const [path, lines] of Object.entries(files))
		box.inside(
			`mkdir -p "$(dirname '${path}')"; printf '%s\\n' ${lines.map(line => `'${line}'`).join(' ')} >'${path}'`,
		);
	box.inside('systemctl daemon-reload');
}

const sleeper = (...lines: readonly string[]): readonly string[] => [
	'[Service]',
	'ExecStart=/bin/sleep 600',
	...lines,
	'[Install]',
	'WantedBy=multi-user.target',
];

const isActive = (unit: string): string => box.inside(`systemctl is-active ${unit} || true`).trim();

/** What the probe makes of the unit: does it run, does it come back, and why. */
async function seen(unit: string): Promise<{run: string; comesBack: string; service: Service}> {
	await open.engine.look(['services']);
	const service = fresh(open.engine.situation().facts.services)?.units.find(each => each.unit === unit);
	if (!service) throw new Error(`${unit} is not seen`);
	return {run: runState(service), comesBack: bootVerdict(service).comesBack, service};
}

const act = (id: OperationId, argument: string | null = null) => actOn(open, id, argument);
const ids = ({steps}: Plan): readonly string[] => steps.map(({id}) => id);

/** Stops for good, looks with systemd's own words, and takes it back. `steps`: what the plan must hold. */
async function stopsAndComesBack(unit: string, steps: readonly string[]): Promise<void> {
	const before = await seen(unit);
	expect([before.run, before.comesBack, before.service.unwanted]).toEqual(['running', 'yes', true]);
	expect(before.service.pids).toHaveLength(1);
	const stopped = await act('stop-service', unit);
	expect([stopped.outcome, ids(stopped.plan)], stopped.words).toEqual(['done', steps]);
	expect(isActive(unit)).toBe('inactive');
	expect((await seen(unit)).comesBack).toBe('no');
	const undone = await act('undo');
	expect(undone.outcome, undone.words).toBe('done');
	const after = await seen(unit);
	expect([after.run, after.comesBack, after.service.unitFileState]).toEqual([
		'running',
		'yes',
		before.service.unitFileState,
	]);
	box.inside(`systemctl stop ${unit}`);
}

lab('a unit with Restart=always is stopped for good, and comes back with undo', canRunSystemd, async () => {
	install({[`${LIB}/lab-always.service`]: sleeper('Restart=always', 'RestartSec=1')});
	box.inside('systemctl enable --now lab-always.service');
	const main = (await seen('lab-always.service')).service.mainPid;
	box.inside(`kill -KILL ${main}`);
	await until(async () => (await seen('lab-always.service')).run === 'will start again');
	await until(async () => (await seen('lab-always.service')).run === 'running');
	expect((await seen('lab-always.service')).service.restarts).toBe(1);
	await stopsAndComesBack('lab-always.service', ['stop', 'disable', 'gone']);
});

lab('a unit that a timer starts is held before it is stopped, and the timer finds it so', canRunSystemd, async () => {
	install({
		[`${LIB}/lab-timed.service`]: ['[Service]', 'ExecStart=/bin/sleep 600'],
		[`${LIB}/lab-timed.timer`]: ['[Timer]', 'OnActiveSec=0', 'OnUnitInactiveSec=1', 'AccuracySec=100ms'],
	});
	box.inside('systemctl start lab-timed.timer');
	await until(() => isActive('lab-timed.service') === 'active');
	expect((await seen('lab-timed.service')).service.triggeredBy).toEqual(['lab-timed.timer']);
	const {outcome, words, plan} = await act('stop-service', 'lab-timed.service');
	expect([outcome, ids(plan)], words).toEqual(['done', ['mask', 'stop', 'gone']]);
	await until(
		() => isActive('lab-timed.timer') === 'failed',
		10_000,
		() => box.inside('systemctl status lab-timed.timer; systemctl show lab-timed.timer'),
	);
	expect(isActive('lab-timed.service')).toBe('inactive');
	const undone = await act('undo');
	expect(undone.outcome, undone.words).toBe('done');
	expect(isActive('lab-timed.service')).toBe('active');
	box.inside('systemctl stop lab-timed.timer lab-timed.service');
});

lab('a link below /usr/lib that outlives `disable` is held by a mask', canRunSystemd, async () => {
	install({[`${LIB}/lab-linked.service`]: sleeper()});
	const link = `${LIB}/multi-user.target.wants/lab-linked.service`;
	box.inside(`mkdir -p ${LIB}/multi-user.target.wants; ln -s ../lab-linked.service ${link}; systemctl daemon-reload`);
	box.inside('systemctl start lab-linked.service; systemctl disable lab-linked.service');
	expect(box.inside('systemctl is-enabled lab-linked.service || true')).toBe('disabled\n');
	await stopsAndComesBack('lab-linked.service', ['stop', 'mask', 'gone']);
});

lab(
	'a unit in /etc, where `mask` is refused, is held by a drop-in that lets its starts be skipped',
	canRunSystemd,
	async () => {
		install({
			[`${ETC}/lab-made.service`]: sleeper('Restart=always'),
			[`${ETC}/lab-needs.service`]: ['[Unit]', 'Requires=lab-made.service', ...sleeper()],
		});
		box.inside('systemctl enable --now lab-made.service lab-needs.service');
		expect(() => box.inside('systemctl mask lab-made.service')).toThrow(/already exists/);
		expect((await seen('lab-made.service')).service.requiredBy).toEqual(['lab-needs.service']);
		await stopsAndComesBack('lab-made.service', ['disable', 'drop-in', 'stop', 'gone']);
		const again = await act('stop-service', 'lab-made.service').catch(error => error.message);
		expect(again).toMatchObject({outcome: 'done'});
		box.inside('systemctl start lab-needs.service');
		expect([isActive('lab-needs.service'), isActive('lab-made.service')]).toEqual(['active', 'inactive']);
	},
);

lab(
	'links in /etc and below /usr/lib at once: one plan disables the one and blocks the other',
	canRunSystemd,
	async () => {
		for (const [name, target, names] of [
			['lab-two', 'basic.target', 2],
			// Of two links from one target systemd names one.
			['lab-same', 'multi-user.target', 1],
		] as const) {
			install({[`${LIB}/${name}.service`]: sleeper()});
			box.inside(
				`mkdir -p ${LIB}/${target}.wants; ln -s ../${name}.service ${LIB}/${target}.wants/; systemctl enable ${name}; systemctl daemon-reload; systemctl start ${name}`,
			);
			const {service} = await seen(`${name}.service`);
			expect([service.wantedBy.length, service.wantedOutside]).toEqual([names, [target]]);
			await stopsAndComesBack(`${name}.service`, ['stop', 'disable', 'mask', 'gone']);
		}
	},
);

lab('a unit whose file is gone while it runs is stopped, and no way back is promised', canRunSystemd, async () => {
	install({[`${ETC}/lab-gone.service`]: sleeper()});
	box.inside(`systemctl enable --now lab-gone; rm ${ETC}/lab-gone.service; systemctl daemon-reload`);
	const {service, run} = await seen('lab-gone.service');
	expect([service.loadState, run]).toEqual(['not-found', 'running']);
	const {outcome, words, plan} = await act('stop-service', 'lab-gone.service');
	expect([outcome, plan.inverse], words).toEqual(['done', null]);
	expect(plan.warnings).toContain('its unit file is gone: once stopped it cannot be started again');
	await expect(act('undo')).rejects.toThrow('stop-service has no way back');
});

lab('a process that does not hear TERM is ended by systemd, and the stop waits for that', canRunSystemd, async () => {
	install({
		[`${LIB}/lab-deaf.service`]: [
			'[Service]',
			`ExecStart=/bin/sh -c "trap : TERM; while :; do sleep 1; done"`,
			'TimeoutStopSec=2',
			'[Install]',
			'WantedBy=multi-user.target',
		],
	});
	box.inside('systemctl enable --now lab-deaf');
	expect((await seen('lab-deaf.service')).service.stopLimitMs).toBe(2_000);
	const {outcome, words} = await act('stop-service', 'lab-deaf.service');
	expect(outcome, words).toBe('done');
	expect((await seen('lab-deaf.service')).run).toBe('stopped by force');
	expect(isActive('lab-deaf.service')).toBe('failed');
});

lab(
	'with /etc full a block is not written by half: the operation fails and nothing counts as blocked',
	canRunSystemd,
	async () => {
		install({
			[`${LIB}/lab-full.service`]: sleeper(),
			[`${LIB}/lab-wants.service`]: ['[Unit]', 'Requires=lab-full.service', ...sleeper()],
		});
		box.inside(`systemctl enable --now lab-full lab-wants; mount -o remount,size=64k ${ETC}`);
		box.inside(`mkdir -p ${ETC}/lab-full.service.d; head -c 100000 /dev/zero >${ETC}/ballast || true`);
		const {outcome, words} = await act('stop-service', 'lab-full.service');
		expect(outcome, words).toBe('failed');
		box.inside(`rm ${ETC}/ballast; mount -o remount,size=16m ${ETC}; systemctl daemon-reload`);
		expect((await seen('lab-full.service')).service.dropInPaths).toEqual([]);
		expect((await act('stop-service', 'lab-full.service')).outcome).toBe('done');
		expect(box.inside(`cat ${ETC}/lab-full.service.d/50-blocked.conf`)).toContain('ConditionPathExists');
	},
);

lab('a frozen unit is stopped like any other', canRunSystemd, async () => {
	install({[`${LIB}/lab-frozen.service`]: sleeper()});
	box.inside('systemctl enable --now lab-frozen; echo 1 >/sys/fs/cgroup/system.slice/lab-frozen.service/cgroup.freeze');
	await stopsAndComesBack('lab-frozen.service', ['stop', 'disable', 'gone']);
});

lab(
	'a unit of any name that holds a card is found, and still looked at once it has let go',
	canRunSystemd,
	async () => {
		install({
			[`${LIB}/model.service`]: [
				'[Service]',
				'ExecStart=/bin/sh -c "exec sleep 600 3</dev/nvidiactl"',
				'ExecStopPost=/bin/sleep 2',
				'[Install]',
				'WantedBy=multi-user.target',
			],
		});
		box.inside(': >/dev/nvidiactl; systemctl enable --now model');
		const {outcome, words} = await act('stop-service', 'model.service');
		expect(outcome, words).toBe('done');
		expect(isActive('model.service')).toBe('inactive');
		const undone = await act('undo');
		expect(undone.outcome, undone.words).toBe('done');
		box.inside('systemctl stop model');
	},
);

lab(
	'a process in D outlives its stop, which says so; when its I/O returns it is gone',
	all(canRunSystemd, fuse),
	async () => {
		install({
			[`${LIB}/lab-hung.service`]: [
				'[Service]',
				'ExecStart=/usr/bin/stat /mnt/waits/file',
				'TimeoutStopSec=1',
				'[Install]',
				'WantedBy=multi-user.target',
			],
		});
		box.inside('mkdir -p /mnt/waits');
		const release = box.beside([
			'python3',
			'-c',
			readFileSync(join(import.meta.dirname, 'mount-that-waits.py'), 'utf8'),
			'/mnt/waits',
		]);
		await until(() => box.inside('cat /proc/self/mountinfo').includes(' /mnt/waits '));
		box.inside('systemctl enable --now lab-hung');
		const [pid] = (await seen('lab-hung.service')).service.pids;
		const {outcome, words} = await act('stop-service', 'lab-hung.service');
		expect([outcome, words]).toEqual(['failed', expect.stringContaining(`outlive SIGKILL: pid ${pid} cannot end`)]);
		expect(box.inside(`ps -o state= -p ${pid}`).trim()).toBe('D');
		release();
		await until(async () => /^stopped/.test((await seen('lab-hung.service')).run));
		expect((await seen('lab-hung.service')).comesBack).toBe('no');
	},
);

lab('with the manager silent the unit files alone tell, and nothing is planned on that', canRunSystemd, async () => {
	install({[`${LIB}/lab-quiet.service`]: sleeper()});
	box.inside('systemctl enable --now lab-quiet');
	box.inside('mv /run/systemd/private /run/systemd/private.away');
	try {
		await open.engine.look(['services']);
		const facts = fresh(open.engine.situation().facts.services);
		expect(facts?.manager).toBe('silent');
		expect(facts?.units.find(({unit}) => unit === 'lab-quiet.service')?.unitFileState).toBe('enabled');
		await expect(act('stop-service')).rejects.toThrow('no service manager answers on this host (silent)');
	} finally {
		box.inside('mv /run/systemd/private.away /run/systemd/private');
	}
	await stopsAndComesBack('lab-quiet.service', ['stop', 'disable', 'gone']);
});
