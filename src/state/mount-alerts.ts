import {mountsWritten} from '../ops/probes/mount-of.ts';
import type {Seen} from './alert-rules.ts';

export function hungMounts({facts}: Seen) {
	const mounts = facts.mounts?.last?.value.mounts ?? [];
	return mounts
		.filter(mount => mount.size.kind === 'hung')
		.map(mount => ({subject: mount.path, words: `${mount.path} does not answer`}));
}

/** A mount may be read-only on purpose; one that the work writes to may not. */
export function badMounts({facts, target}: Seen) {
	const seen = facts.mounts?.last?.value;
	const written = mountsWritten(target, seen?.mounts.filter(mount => !mount.covered) ?? []);
	const wrong = (seen?.mounts ?? []).filter(
		mount =>
			!mount.covered &&
			(mount.unexpected !== null ||
				mount.writable === 'emergency read-only' ||
				(mount.writable !== 'yes' && written.has(mount.path))),
	);
	return [
		...(seen?.missing ?? []).map(path => ({subject: path, words: `${path} is not mounted`})),
		...wrong.map(mount => ({subject: mount.path, words: `${mount.path}: ${mount.unexpected ?? mount.writable}`})),
	];
}

export function fillingMounts({facts}: Seen) {
	return (facts.mounts?.last?.value.mounts ?? []).flatMap(mount => {
		if (mount.size.kind !== 'answered' || mount.size.totalBytes === 0) return [];
		const usedFraction = 1 - mount.size.availableBytes / mount.size.totalBytes;
		const inodes = mount.size.inodes > 0 && mount.size.inodesFree / mount.size.inodes < 0.02;
		if (usedFraction < 0.95 && !inodes) return [];
		return [
			{
				subject: mount.path,
				words: inodes
					? `${mount.path} has no inodes left to speak of`
					: `${mount.path} is ${Math.round(usedFraction * 100)} % full`,
			},
		];
	});
}
