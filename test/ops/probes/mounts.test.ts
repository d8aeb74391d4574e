import {describe, expect, it} from 'vitest';
import {isVolatile, mountOf, parseMountinfo, parseMounts} from '../../../src/ops/formats/mountinfo.ts';
import {ParseError} from '../../../src/ops/outcome.ts';
import {type Mount, type MountFacts, type MountSize, mounts} from '../../../src/ops/probes/mounts.ts';
import type {ExpectedMount} from '../../../src/ops/target.ts';
import {answerOf, contextOf, fixture, look, makeTree, NOW_MS, pathWith, runScript} from './support.ts';

const ANY = {type: null, source: null, volume: null, freeBytes: null};
const expecting = (...mountsExpected: ExpectedMount[]) => ({expect: {gpus: null, mounts: mountsExpected}});
const answer = (table: string, sizes = '', volumes = '') => answerOf({table, mounts: '', volumes, sizes});
const parse = (table: string, sizes = '', target = expecting(), last: MountFacts | null = null, nowMs = NOW_MS) =>
	mounts.parse(answer(table, sizes), contextOf({target, last, hints: {nowMs}}));

const NOT_ASKED: MountSize = {kind: 'not asked'};
const DATA: Mount = {
	id: 41,
	device: '0:45',
	path: '/data',
	root: '/',
	type: 'ceph',
	source: '192.0.2.11:6789,192.0.2.12:6789:/vol',
	volatile: false,
	covered: false,
	writable: 'yes',
	size: NOT_ASKED,
	unexpected: null,
	expected: false,
};

describe('a statfs that hangs costs only its own mount', () => {
	const table = fixture('mountinfo/statfs-hang.txt');
	const given: Record<string, {answeredMs: number | null; bsize?: number; blocks?: number; bavail?: number}> =
		JSON.parse(fixture('mountinfo/statfs-hang-answers.json'));
	const ids: Record<string, number> = {'/': 27, '/data': 41, '/shared': 42, '/scratch': 43};
	const sizes = Object.entries(given)
		.flatMap(([path, {answeredMs, bsize, blocks, bavail}]) => [
			`c ${ids[path]} ${5000 + (ids[path] ?? 0)} 777`,
			answeredMs === null ? '' : `a ${ids[path]} 0 ${bsize} ${blocks} ${bavail} ${bavail} 10 5`,
		])
		.join('\n');

	const size = (blocks: number, available: number): MountSize => ({
		kind: 'answered',
		totalBytes: blocks * 4096,
		availableBytes: available * 4096,
		inodes: 10,
		inodesFree: 5,
	});
	const hung = (id: number, since = NOW_MS): MountSize => ({
		kind: 'hung',
		since,
		childPid: 5000 + id,
		childStartTicks: 777,
	});

	it('lists all four; two with sizes, two without an answer', () => {
		expect(parse(table, sizes)).toEqual({
			mounts: [
				{
					...DATA,
					id: 27,
					device: '259:2',
					path: '/',
					type: 'ext4',
					source: '/dev/nvme0n1p2',
					size: size(120000000, 60000000),
				},
				{...DATA, size: hung(41)},
				{...DATA, id: 42, device: '0:46', path: '/shared', type: 'nfs4', source: '192.0.2.20:/export', size: hung(42)},
				{
					...DATA,
					id: 43,
					device: '0:47',
					path: '/scratch',
					type: 'xfs',
					source: '/dev/nvme1n1',
					size: size(3900000000, 2500000000),
				},
			],
			missing: [],
		});
	});

	it('leaves a hung mount out until its child is gone, and keeps since when', () => {
		const first = parse(table, sizes);
		const script = mounts.script(contextOf({last: first})) ?? '';
		expect(script).toContain('h 41 5041 777 /data;');
		expect(script).toContain('a 43 /scratch');
		const still = parse(table, 'h 41\nh 42\na 27 0 1 1 1 1 1 1', expecting(), first, NOW_MS + 5000);
		expect(still.mounts[1]?.size).toEqual(hung(41));
		const again = parse(table, 'c 41 6041 888\nh 42', expecting(), still, NOW_MS + 10_000);
		expect(again.mounts[1]?.size).toEqual({kind: 'hung', since: NOW_MS, childPid: 6041, childStartTicks: 888});
	});

	it('for real: a stat that never answers, in the time of one limit, and no second child', async () => {
		const tree = makeTree({
			'bin/stat': '#!/bin/sh\ncase "$*" in *dead*) exec sleep 30 ;; esac\nexec /usr/bin/stat "$@"\n',
			'good/x': '',
			'dead one/x': '',
		});
		const line = (id: number, path: string) => `${id} 1 0:${id} / ${path} rw - ext4 /dev/x${id} rw\n`;
		const table = line(7, `${tree.root}/good`) + line(8, `${tree.root}/dead\\040one`);
		const more = makeTree({'proc/self/mountinfo': table, 'proc/mounts': ''});
		const roots = {proc: `${more.root}/proc`, path: pathWith(tree.root)};
		const target = expecting({path: `${tree.root}/good`, ...ANY});
		const first = await look(mounts, contextOf({target}), roots);
		expect(first.mounts.map(({size}) => size.kind)).toEqual(['answered', 'not asked']);
		const startedAt = Date.now();
		const second = await look(mounts, contextOf({target, last: first}), roots);
		expect(Date.now() - startedAt).toBeLessThan(3500);
		expect(second.mounts.map(({size}) => size.kind)).toEqual(['answered', 'hung']);
		const child = second.mounts[1]?.size;
		const pid = child?.kind === 'hung' ? child.childPid : null;
		const again = Date.now();
		const third = await look(mounts, contextOf({target, last: second, hints: {nowMs: NOW_MS + 5000}}), roots);
		expect(Date.now() - again).toBeLessThan(1000);
		expect(third.mounts[1]?.size).toEqual(child);
		await runScript(`kill ${pid}`);
		tree.remove();
		more.remove();
	});
});

describe('mount points with escapes', () => {
	it('decodes exactly three octal digits and finds the lone dash', () => {
		const lines = parseMountinfo(fixture('mountinfo/escapes.txt'));
		const picked = lines.map(({id, path, root, type, source}) => ({id, path, root, type, source}));
		expect(picked).toEqual([
			{id: 66, path: '/mnt/a b\tc\\d', root: '/', type: 'tmpfs', source: 'src with space'},
			{id: 67, path: '/mnt/SK hynix 256GB', root: '/sub dir', type: 'ext4', source: '/dev/nvme2n1p1'},
			{id: 68, path: '/mnt/noopt', root: '/', type: 'tmpfs', source: 'none'},
			{id: 69, path: '/mnt/gone', root: '/snap//deleted', type: 'tmpfs', source: 't'},
			{id: 70, path: '/mnt/hash#x', root: '/', type: 'ext4', source: '/dev/sda1'},
		]);
		expect(parseMountinfo('1 1 0:1 / /a\\0403 rw - ext4 x rw')[0]?.path).toBe('/a 3');
		expect(parse(fixture('mountinfo/escapes.txt')).mounts.length).toBe(5);
	});

	it('names a line that does not fit', () => {
		expect(() => parseMountinfo('1 1 0:1 / /a rw ext4')).toThrow(ParseError);
	});

	it('quotes such a path for the shell', () => {
		const facts = parse("66 44 0:40 / /mnt/it's\\040b rw - ext4 s rw");
		expect(mounts.script(contextOf({last: facts}))).toContain("a 66 '/mnt/it'\\''s b'");
	});
});

describe('read-only in its four kinds', () => {
	it('compares options as whole words in both lists', () => {
		const {mounts: seen} = parse(fixture('mountinfo/emergency-ro.txt'));
		expect(seen.map(({path, writable}) => [path, writable])).toEqual([
			['/data', 'emergency read-only'],
			['/shared', 'read-only mount'],
			['/old', 'read-only superblock'],
			['/ok', 'yes'],
		]);
	});
});

describe('mounts against the configuration', () => {
	const table = [
		'10 1 8:1 / / rw - ext4 /dev/sda1 rw',
		'11 10 8:2 / /data rw - xfs /dev/nvme0n1 rw',
		'12 10 0:5 / /run rw - tmpfs tmpfs rw',
		'13 10 0:6 / /dev/shm rw - tmpfs tmpfs rw',
		'14 10 0:7 / /tmp rw - tmpfs tmpfs rw',
		'15 10 0:8 / /net rw - autofs systemd-1 rw',
		'16 10 0:9 / /work rw - tmpfs tmpfs rw',
	].join('\n');
	const data = {path: '/data', type: 'ext4', source: '/dev/nvme1n1', volume: null, freeBytes: 2e12};

	it('says what is wrong, and what is missing', () => {
		const target = expecting(data, {path: '/shared', ...ANY}, {path: '/tmp', ...ANY});
		const facts = parse(table, 'a 11 0 4096 100 50 50 1 1', target);
		expect(facts.missing).toEqual(['/shared']);
		expect(facts.mounts.map(({path, expected, unexpected}) => [path, expected, unexpected])).toEqual([
			['/', false, null],
			['/data', true, 'type xfs, expected ext4; from /dev/nvme0n1, expected /dev/nvme1n1; less free than expected'],
			['/dev/shm', false, null],
			['/tmp', true, null],
			['/work', false, null],
		]);
	});

	it.each([
		['a marker file with the id', 'i 11 abc-1', '', null],
		['a marker file of another volume', 'i 11 abc-2', '', 'volume abc-2, expected abc-1'],
		['a link to this disk', 'i 11 ', 'abc-1 ../../nvme0n1\n', null],
		['a link to another disk', 'i 11 ', 'abc-1 ../../sdb\n', 'volume abc-1 is sdb, not nvme0n1'],
		['no sign at all', 'i 11 ', 'abc-1 \n', 'no sign of volume abc-1 on it'],
	])('proves the volume: %s', (_, marker, volumes, words) => {
		const target = expecting({path: '/data', ...ANY, volume: 'abc-1'});
		const sizes = `a 11 0 4096 100 50 50 1 1\n${marker}`;
		const facts = mounts.parse(answer(table, sizes, volumes), contextOf({target}));
		expect(facts.mounts.find(({path}) => path === '/data')?.unexpected).toBe(words);
	});

	it('marks what a later mount covers, and asks only what is visible', () => {
		const over = parse(
			`${table}\n17 11 8:9 / /data rw - ext4 /dev/sdz rw`,
			'a 17 0 4096 100 50 50 1 1',
			expecting(data),
		);
		const [below, above] = over.mounts.filter(({path}) => path === '/data');
		expect([below?.covered, below?.size, below?.expected, above?.covered, above?.expected]).toEqual([
			true,
			NOT_ASKED,
			false,
			false,
			true,
		]);
		expect(mounts.script(contextOf({last: over}))).not.toContain('a 11 ');
	});

	it('reads the captured table: the visible one of two /dev/shm', () => {
		const {mounts: seen} = parse(
			fixture('mountinfo/6.18-debian-12-overmount.txt'),
			`a 27 0 ${fixture('stat-f/coreutils-9.1-ext4.txt')}`,
		);
		expect(
			seen.map(({id, path, type, covered, volatile, size}) => [id, path, type, covered, volatile, size.kind]),
		).toEqual([
			[25, '/dev/shm', 'tmpfs', true, true, 'not asked'],
			[27, '/', 'ext4', false, false, 'answered'],
			[30, '/dev/shm', 'tmpfs', false, true, 'not asked'],
		]);
	});

	it('keeps the words of a stat that failed', () => {
		const {mounts: seen} = parse(
			table,
			'a 11 1 stat: cannot read file system information: Transport endpoint is not connected',
		);
		expect(seen[1]?.size).toEqual({
			kind: 'failed',
			says: 'cannot read file system information: Transport endpoint is not connected',
		});
	});

	it('reads the older table where there is no mountinfo', async () => {
		expect(parseMounts('/dev/sda1 /mnt/a\\040b ext4 rw,ro 0 0')[0]?.path).toBe('/mnt/a b');
		const tree = makeTree({'proc/mounts': '/dev/sda1 / ext4 rw,relatime 0 0\nproc /proc proc rw 0 0\n'});
		const facts = await look(mounts, contextOf(), {proc: `${tree.root}/proc`});
		expect(facts.mounts.map(({id, path, writable}) => [id, path, writable])).toEqual([[1, '/', 'yes']]);
		tree.remove();
	});

	it('a host without any table is a complaint', async () => {
		await expect(look(mounts, contextOf(), {proc: '/nonexistent'})).rejects.toThrow('no mount table');
	});

	it('looks at this machine', async () => {
		const facts = await look(mounts, contextOf());
		const root = facts.mounts.findLast(({path}) => path === '/');
		expect(root?.size).toMatchObject({kind: 'answered', totalBytes: expect.any(Number)});
	});
});

describe('what a boot empties', () => {
	const lines = parseMountinfo(
		[
			'1 0 8:1 / / rw - ext4 /dev/sda1 rw',
			'2 1 0:1 / /dev/shm rw - tmpfs t rw',
			'3 1 8:2 / /tmp/box/data rw - ext4 /dev/sdb rw',
			'4 1 0:2 / /mem rw - tmpfs t rw',
		].join('\n'),
	);

	it.each([
		['/dev/shm/x', true],
		['/mem/x', true],
		['/tmp/x.py', true],
		['/run/x', true],
		['/tmp/box/data/x', false],
		['/tmp/box/datax', true],
		['/root/x', false],
	])('%s', (path, volatile) => {
		expect(isVolatile(path, lines)).toBe(volatile);
	});

	it('finds the mount above a path', () => {
		expect(mountOf('/tmp/box/data/a/b', lines)?.id).toBe(3);
	});
});
