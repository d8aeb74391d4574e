import {ParseError} from '../outcome.ts';

/**
 * One line of /proc/PID/mountinfo, in the kernel's order. Strings are decoded (`\040` is a blank; exactly three octal
 * digits). `covered`: a later line has the same mount point, so this one cannot be seen. Source: proc(5);
 * fixtures/mountinfo.
 */
export type MountLine = {
	readonly id: number;
	readonly device: string;
	readonly root: string;
	readonly path: string;
	readonly options: readonly string[];
	readonly type: string;
	readonly source: string;
	readonly superOptions: readonly string[];
	readonly covered: boolean;
};

export function parseMountinfo(text: string): readonly MountLine[] {
	return markCovered(
		text
			.split('\n')
			.filter(line => line !== '')
			.map(parseLine),
	);
}

function parseLine(line: string): MountLine {
	const fields = line.split(' ');
	/** 0..n optional fields stand before the lone `-`; a mount point `-` cannot be, it begins with a slash. */
	const dash = fields.indexOf('-', 6);
	const [id = '', , device = '', root = '', path = '', options = ''] = fields;
	const [type = '', source = '', superOptions = ''] = dash < 0 ? [] : fields.slice(dash + 1);
	if (dash < 0 || type === '' || !/^\d+$/.test(id)) throw new ParseError('mountinfo', line);
	return {
		id: Number(id),
		device,
		root: decode(root),
		path: decode(path),
		options: options.split(','),
		type: decode(type),
		source: decode(source),
		superOptions: superOptions.split(','),
		covered: false,
	};
}

/** The older /proc/mounts: no ids, no root, one option list. The line number stands for the id. */
export function parseMounts(text: string): readonly MountLine[] {
	const lines = text.split('\n').filter(line => line !== '');
	return markCovered(
		lines.map((line, index) => {
			const [source = '', path = '', type = '', options = ''] = line.split(' ');
			if (type === '') throw new ParseError('/proc/mounts', line);
			return {
				id: index + 1,
				device: '',
				root: '/',
				path: decode(path),
				options: options.split(','),
				type: decode(type),
				source: decode(source),
				superOptions: options.split(','),
				covered: false,
			};
		}),
	);
}

function markCovered(lines: readonly MountLine[]): readonly MountLine[] {
	const visible = new Map(lines.map((line, index) => [line.path, index]));
	return lines.map((line, index) => (visible.get(line.path) === index ? line : {...line, covered: true}));
}

/** The kernel escapes bytes, not characters; those it escapes are all ASCII. */
const decode = (text: string) =>
	text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));

/** The mount that holds `path`: the visible line with the longest mount point above it. */
export function mountOf(path: string, lines: readonly MountLine[]): MountLine | null {
	let best: MountLine | null = null;
	for (const line of lines) {
		if (line.covered) continue;
		const inside = line.path === '/' || path === line.path || path.startsWith(`${line.path}/`);
		if (inside && (!best || line.path.length >= best.path.length)) best = line;
	}
	return best;
}

const MEMORY_TYPES = ['tmpfs', 'ramfs', 'devtmpfs'];

/** Whether what lies there is gone after a boot: in memory, or below a directory that is emptied. */
export function isVolatile(path: string, lines: readonly MountLine[]): boolean {
	const mount = mountOf(path, lines);
	if (mount && MEMORY_TYPES.includes(mount.type)) return true;
	const emptied = ['/tmp', '/run', '/dev/shm'].find(root => path === root || path.startsWith(`${root}/`));
	if (!emptied) return false;
	/** A disk mounted below such a directory is a disk. */
	return !mount?.path.startsWith(`${emptied}/`);
}
