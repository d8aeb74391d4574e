import {fresh} from '../facts.ts';
import type {Situation} from '../operations/operation.ts';
import {mountOf} from '../probes/mount-of.ts';
import type {Mount} from '../probes/mounts.ts';
import {type Finding, fail, failWhen, type PreflightCheck, unseen, warn} from './check.ts';

/** Of one token: three auxiliary states and two final ones, two bytes a value. */
const STATES_AT_MOST = 5;

/** Mounts, room, and the directory between server and extractor. */
export const PLACE_CHECKS: readonly PreflightCheck[] = [
	{
		id: 'mounts',
		says: 'expected mounts are there, on the expected devices, and answer',
		blocks: 'launch',
		mends: null,
		finds({facts, target}) {
			const seen = fresh(facts.mounts);
			if (!seen)
				return target.expect.mounts.length > 0
					? unseen('the mounts have not been seen yet, or the last look failed')
					: null;
			const bad = seen.mounts.filter(mount => mount.expected && (mount.size.kind === 'hung' || mount.unexpected));
			return [
				...bad.map(mount =>
					fail(mount.size.kind === 'hung' ? `${mount.path} does not answer` : `${mount.path}: ${mount.unexpected}`),
				),
				...failWhen(seen.missing.length > 0, `not mounted: ${seen.missing.join(', ')}`),
			];
		},
	},
	{
		id: 'stale-dumps',
		says: 'the dump directory holds no request of a dead server',
		blocks: 'launch',
		mends: 'clear-dumps',
		finds({facts, target}) {
			const {dump} = target;
			if (!dump) return null;
			const dumps = fresh(facts.extraction)?.dumps;
			if (fresh(facts.server)?.process === 'alive') return [];
			if (!dumps) return unseen(`${dump.dir} has not been seen yet, or the last look failed`);
			const stale = dumps.length;
			return failWhen(stale > 0, `${stale} stale request(s) in ${dump.dir}: clear them first`);
		},
	},
	{
		id: 'dump-room',
		says: 'the dump directory has room for the longest sample',
		blocks: 'extraction',
		mends: null,
		finds(situation) {
			const {dump, extraction} = situation.target;
			if (!dump || !extraction) return null;
			const needed = extraction.maxTokens * extraction.hiddenSize * 2 * STATES_AT_MOST * extraction.concurrency;
			return roomOn(situation, dump.dir, needed, 'for the samples in flight');
		},
	},
	{
		id: 'output',
		says: 'the output can be written and has room for the remaining samples',
		blocks: 'extraction',
		mends: null,
		finds(situation) {
			const {facts, target} = situation;
			if (!target.extraction) return null;
			const {output} = target.extraction;
			const inventory = fresh(facts.extraction)?.inventory ?? null;
			if (!inventory) return unseen('the output tree has not been seen yet, or the last look failed');
			const {expected, present, complete, bytes} = inventory;
			if (expected === null)
				return [warn('how many samples there will be is not configured (extraction.expect.records)')];
			if (present === 0) return roomOn(situation, output, 0, '');
			return roomOn(situation, output, ((expected - complete) * bytes) / present, 'for the remaining samples');
		},
	},
];

function roomOn({facts}: Situation, path: string, neededBytes: number, why: string): readonly Finding[] {
	const seen = fresh(facts.mounts);
	const mount: Mount | null = seen ? mountOf(path, seen.mounts) : null;
	if (!mount) return unseen(`the mount of ${path} has not been seen yet, or the last look failed`);
	if (mount.writable !== 'yes') return [fail(`${mount.path} is ${mount.writable}`)];
	const {size} = mount;
	if (size.kind === 'hung') return [fail(`${mount.path} does not answer`)];
	if (size.kind !== 'answered') return unseen(`how much is free on ${mount.path} is not known`);
	const {availableBytes, inodes, inodesFree} = size;
	return [
		...failWhen(
			availableBytes < neededBytes,
			`${amount(availableBytes)} are free on ${mount.path}, ${amount(neededBytes)} are needed ${why}`,
		),
		...failWhen(inodes > 0 && inodesFree === 0, `${mount.path} has no inode left`),
	];
}

/** Two figures that differ must not read the same: small ones in small units. */
function amount(bytes: number): string {
	if (bytes >= 1e12) return `${(bytes / 1e12).toFixed(2)} TB`;
	if (bytes >= 1e9) return `${(bytes / 1e9).toFixed(1)} GB`;
	return bytes >= 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.ceil(bytes / 1e3)} kB`;
}
