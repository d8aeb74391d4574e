import {spawnSync} from 'node:child_process';
import {mkdirSync, mkdtempSync, rmSync} from 'node:fs';
import {release, tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, beforeEach, expect} from 'vitest';
import type {Composition} from '../../bin/compose.ts';
import {fresh} from '../../src/ops/facts.ts';
import type {Mount} from '../../src/ops/probes/mounts.ts';
import {all, lab, program, root} from './needs.ts';
import {type Contained, contained, hostBehind, openOn} from './operator.ts';

let folder = '';
let place: Contained | null = null;
let open: Composition | null = null;
const at = (name: string) => join(folder, name);

beforeEach(() => {
	folder = mkdtempSync(join(tmpdir(), 'relight-storage-'));
	for (const name of ['disk', 'image']) mkdirSync(at(name));
});
afterEach(async () => {
	await open?.engine.stop();
	await place?.close();
	open = null;
	place = null;
	rmSync(folder, {recursive: true, force: true});
});

/** A mount namespace made by `script`, in which `disk` is expected, seen by two looks: the second knows what it asks. */
async function seen(script: string, expected = '{}'): Promise<{mounts: readonly Mount[]; alerts: readonly string[]}> {
	place = await contained(['-m'], script);
	const prefix = ['nsenter', '-t', String(place.pid), '-m'];
	open = await openOn(hostBehind(prefix, `, expect: {mounts: {'${at('disk')}': ${expected}}}`), folder);
	await open.engine.look(['mounts']);
	await open.engine.look(['mounts']);
	const facts = fresh(open.engine.situation().facts.mounts);
	return {
		mounts: facts?.mounts.filter(({path}) => path === at('disk')) ?? [],
		alerts: open.store.getState().alerts.map(({words}) => words),
	};
}

const inside = (script: string) =>
	spawnSync('nsenter', ['-t', String(place?.pid), '-m', 'sh', '-c', script], {encoding: 'utf8'});

const canMount = all(root, program('unshare', 'util-linux'), program('nsenter', 'util-linux'));

lab('a full disk is seen full, and a write there says so too', canMount, async () => {
	const fill = `mount -t tmpfs -o size=1m lab '${at('disk')}'; head -c 2000000 /dev/zero >'${at('disk')}/file' || true`;
	const {mounts, alerts} = await seen(fill);
	expect(inside(`head -c 9 /dev/zero >'${at('disk')}/more'`).stderr).toContain('No space left on device');
	expect(mounts).toMatchObject([{writable: 'yes', size: {kind: 'answered', totalBytes: 1 << 20, availableBytes: 0}}]);
	expect(alerts).toContain(`${at('disk')} is 100 % full`);
});

lab('a disk without inodes is told from a full one', canMount, async () => {
	const fill = `mount -t tmpfs -o size=1m,nr_inodes=20 lab '${at('disk')}'; cd '${at('disk')}'; touch $(seq 30) 2>/dev/null || true`;
	const {mounts, alerts} = await seen(fill);
	expect(inside(`touch '${at('disk')}/more'`).stderr).toContain('No space left on device');
	expect(mounts).toMatchObject([{size: {kind: 'answered', availableBytes: 1 << 20, inodes: 20, inodesFree: 0}}]);
	expect(alerts).toContain(`${at('disk')} has no inodes left to speak of`);
});

const shows = (): string | null =>
	/^6\.1[234]\./.test(release()) ? `kernel ${release()} shows no sign of it among the mounts` : null;

/** The mount namespace ends with the trial, and the loop device with the mount. */
const loop = (): string | null => {
	const script =
		'mount -t tmpfs lab /mnt && truncate -s 8m /mnt/a && mkfs.ext4 -q /mnt/a && mkdir /mnt/b && mount -o loop /mnt/a /mnt/b';
	const tried = spawnSync('unshare', ['-m', 'sh', '-c', script], {encoding: 'utf8'});
	return tried.status === 0 ? null : `no loop device can be mounted here (${tried.stderr.trim().split('\n').at(-1)})`;
};

lab(
	'ext4 that gave up writing after an error is not taken for writable',
	all(canMount, shows, program('mkfs.ext4', 'e2fsprogs'), loop),
	async () => {
		const image = at('image');
		const {mounts, alerts} = await seen(
			[
				`mount -t tmpfs -o size=64m lab '${image}'; truncate -s 16m '${image}/a'; mkfs.ext4 -q '${image}/a'`,
				`mount -o loop,errors=remount-ro '${image}/a' '${at('disk')}'`,
				`device=$(findmnt -no SOURCE '${at('disk')}'); echo lab >/sys/fs/ext4/"\${device#/dev/}"/trigger_fs_error`,
			].join('\n'),
			'{type: ext4}',
		);
		expect(inside(`touch '${at('disk')}/more'`).stderr).toContain('Read-only file system');
		expect(mounts).toMatchObject([
			{
				writable: expect.stringMatching(/^(emergency read-only|read-only superblock)$/),
				unexpected: null,
				size: {kind: 'answered'},
			},
		]);
		expect(alerts.filter(words => words.includes(at('disk')))).toEqual([expect.stringContaining('read-only')]);
	},
);

lab('of two mounts on one another the upper one counts, and that the lower is not it is told', canMount, async () => {
	const disk = `'${at('disk')}'`;
	const {mounts, alerts} = await seen(
		`mount -t tmpfs -o size=2m lower ${disk}; mount -t tmpfs -o size=4m upper ${disk}`,
		'{source: lower}',
	);
	expect(mounts).toMatchObject([
		{source: 'lower', covered: true, size: {kind: 'not asked'}},
		{source: 'upper', covered: false, size: {kind: 'answered', totalBytes: 4 << 20}},
	]);
	expect(alerts.join('\n')).toMatch(/upper/);
});
