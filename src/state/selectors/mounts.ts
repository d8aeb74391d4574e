import {mountsWritten} from '../../ops/probes/mount-of.ts';
import type {Mount, MountFacts} from '../../ops/probes/mounts.ts';
import type {ExpectedMount, Target} from '../../ops/target.ts';
import type {ConsoleState} from '../state.ts';
import {derive} from './derive.ts';
import {type Face, face, type Level} from './face.ts';
import {factsOnScreen, nowOnScreen} from './on-screen.ts';

export type MountState =
	| 'HUNG'
	| 'missing'
	| 'wrong'
	| 'read-only'
	| 'failed'
	| 'full'
	| 'filling'
	| 'covered'
	| 'not asked'
	| 'ok';

export type MountRow = {
	readonly key: string;
	readonly path: string;
	readonly state: MountState;
	readonly level: Level;
	readonly hungMs: number | null;
	readonly type: string;
	readonly source: string;
	readonly totalBytes: number | null;
	readonly availableBytes: number | null;
	readonly usedFraction: number | null;
	readonly inodesUsedFraction: number | null;
	readonly volatile: boolean;
	readonly expected: boolean;
	/** What is wrong or worth knowing, in words; '' when nothing is. */
	readonly notes: string;
	readonly selected: boolean;
};

export type MountPaneModel = {
	readonly face: Face;
	readonly rows: readonly MountRow[];
	readonly troubled: number;
	readonly ok: number;
};

const FULL = 0.95;
const FILLING = 0.85;

const mountRows = derive(
	[state => factsOnScreen(state).mounts?.last?.value ?? null, state => state.target, nowOnScreen],
	rowsOf,
);

export const selectMounts: (state: ConsoleState) => MountPaneModel = derive(
	[mountRows, state => factsOnScreen(state).mounts, nowOnScreen, state => state.view.selected.mounts],
	(rows, reading, nowMs, selected) => {
		const chosen = rows.some(row => row.key === selected) ? selected : (rows[0]?.key ?? null);
		return {
			face: face('mounts', reading, nowMs),
			rows: rows.map(row => (row.key === chosen ? {...row, selected: true} : row)),
			troubled: rows.filter(row => row.level === 'bad' || row.level === 'warn').length,
			ok: rows.filter(row => row.state === 'ok').length,
		};
	},
);

function rowsOf(facts: MountFacts | null, target: Target, nowMs: number): readonly MountRow[] {
	if (facts === null) return [];
	const expected = target.expect.mounts;
	const written = mountsWritten(
		target,
		facts.mounts.filter(mount => !mount.covered),
	);
	const rows = facts.mounts
		.filter(mount => !mount.covered || mount.expected)
		.map(mount => rowOf(mount, expected.find(({path}) => path === mount.path) ?? null, written.has(mount.path), nowMs));
	const missing = facts.missing.map(
		(path): MountRow => ({
			...NOTHING,
			key: `missing:${path}`,
			path,
			state: 'missing',
			level: 'bad',
			expected: true,
			notes: 'expected here, not mounted',
		}),
	);
	return [...missing, ...rows].toSorted(
		(a, b) => WORST.indexOf(a.level) - WORST.indexOf(b.level) || Number(b.expected) - Number(a.expected),
	);
}

const WORST: readonly Level[] = ['bad', 'warn', 'good', 'plain', 'dim'];

const NOTHING = {
	hungMs: null,
	type: '',
	source: '',
	totalBytes: null,
	availableBytes: null,
	usedFraction: null,
	inodesUsedFraction: null,
	volatile: false,
	selected: false,
} as const;

function rowOf(mount: Mount, expected: ExpectedMount | null, written: boolean, nowMs: number): MountRow {
	const {size} = mount;
	const usedFraction =
		size.kind === 'answered' && size.totalBytes > 0 ? 1 - size.availableBytes / size.totalBytes : null;
	const inodesUsedFraction = size.kind === 'answered' && size.inodes > 0 ? 1 - size.inodesFree / size.inodes : null;
	const state = stateOf(mount, written, Math.max(usedFraction ?? 0, inodesUsedFraction ?? 0));
	return {
		key: `${mount.device} ${mount.path}`,
		path: mount.path,
		state,
		level: LEVELS[state],
		hungMs: size.kind === 'hung' ? Math.max(0, nowMs - size.since) : null,
		type: mount.type,
		source: mount.source,
		totalBytes: size.kind === 'answered' ? size.totalBytes : null,
		availableBytes: size.kind === 'answered' ? size.availableBytes : null,
		usedFraction,
		inodesUsedFraction,
		volatile: mount.volatile,
		expected: mount.expected,
		notes: notesOf(mount, expected, inodesUsedFraction).join(', '),
		selected: false,
	};
}

const LEVELS: Record<MountState, Level> = {
	HUNG: 'bad',
	missing: 'bad',
	wrong: 'bad',
	'read-only': 'bad',
	failed: 'bad',
	full: 'bad',
	filling: 'warn',
	covered: 'warn',
	'not asked': 'dim',
	ok: 'good',
};

function stateOf(mount: Mount, written: boolean, used: number): MountState {
	if (mount.size.kind === 'hung') return 'HUNG';
	if (mount.unexpected !== null) return 'wrong';
	if (mount.covered) return 'covered';
	if (mount.writable !== 'yes' && written) return 'read-only';
	if (mount.writable === 'emergency read-only') return 'read-only';
	if (mount.size.kind === 'failed') return 'failed';
	// A read-only image is full by its nature.
	if (used >= FULL && mount.writable === 'yes') return 'full';
	if (used >= FILLING && mount.writable === 'yes') return 'filling';
	return mount.size.kind === 'not asked' ? 'not asked' : 'ok';
}

function notesOf(mount: Mount, expected: ExpectedMount | null, inodes: number | null): string[] {
	const notes: string[] = [];
	if (mount.size.kind === 'hung') {
		notes.push('no answer');
	}
	if (mount.unexpected !== null) notes.push(mount.unexpected);
	if (mount.size.kind === 'failed') notes.push(mount.size.says);
	if (mount.writable !== 'yes') notes.push(mount.writable);
	if (mount.covered) notes.push('another mount covers it');
	if (inodes !== null && inodes >= FILLING) notes.push(`inodes ${Math.round(inodes * 100)}% used`);
	const free = mount.size.kind === 'answered' ? mount.size.availableBytes : null;
	if (expected?.freeBytes && free !== null && free < expected.freeBytes) notes.push('less free than the work needs');
	if (mount.volatile) notes.push('volatile');
	return notes;
}
