import type {Target} from '../target.ts';

/** The mount that a path lies on: the longest mount point that leads to it. */
export function mountOf<T extends {readonly path: string}>(path: string, mounts: readonly T[]): T | null {
	const leading = mounts.filter(
		mount => path === mount.path || path.startsWith(mount.path === '/' ? '/' : `${mount.path}/`),
	);
	return leading.toSorted((one, other) => other.path.length - one.path.length)[0] ?? null;
}

/** Mount points that the work writes to: read-only is trouble there, and on purpose elsewhere. */
export function mountsWritten(target: Target, mounts: readonly {readonly path: string}[]): ReadonlySet<string> {
	const paths = [target.extraction?.output, target.server?.log, target.dump?.dir].filter(path => path !== undefined);
	return new Set(paths.flatMap(path => mountOf(path, mounts)?.path ?? []));
}
