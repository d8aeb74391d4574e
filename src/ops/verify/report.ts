import {atLeast, type Level, type Verdict} from './verdict.ts';
import type {Judged, Progress, Verified} from './verify.ts';

export type Listed = {readonly path: string; readonly index: number | null; readonly reason: string};

/** What `relight verify --json` prints. A reason is its kind, then a colon and the details where there are any. */
export type Report = {
	readonly schema: 'relight.verify/1';
	readonly level: Level;
	readonly files: number;
	readonly done: number;
	readonly bytes: number;
	readonly seconds: number;
	readonly suspects: readonly (Listed & {readonly layer: number | null})[];
	readonly unverifiable: readonly Listed[];
	readonly unsupported: readonly Listed[];
	/** Missing indices, both ends included. */
	readonly holes: readonly (readonly [number, number])[];
};

export function reportOf(verified: Verified, level: Level): Report {
	const files = [...verified.files].sort((one, other) => (one.path < other.path ? -1 : 1));
	const of = (kind: Verdict['verdict']) => files.filter(({verdict}) => verdict.verdict === kind);
	return {
		schema: 'relight.verify/1',
		level,
		files: files.length,
		done: of('done').length,
		bytes: verified.bytes,
		seconds: Math.round(verified.seconds * 1_000) / 1_000,
		suspects: of('suspect').map(file => ({
			...listed(file),
			layer: 'layer' in file.verdict ? file.verdict.layer : null,
		})),
		unverifiable: of('unverifiable').map(listed),
		unsupported: of('unsupported').map(listed),
		holes: verified.holes,
	};
}

function listed({path, index, verdict}: Judged): Listed {
	const kind = 'reason' in verdict ? verdict.reason : verdict.verdict;
	return {path, index, reason: 'words' in verdict ? `${kind}: ${verdict.words}` : kind};
}

/** 0 all done and no hole, 2 suspects, 1 anything else that is not done: holes, files that cannot be judged, no file. */
export function exitOf({files, done, suspects, holes}: Report): number {
	if (suspects.length > 0) return 2;
	return files > 0 && done === files && holes.length === 0 ? 0 : 1;
}

const MOST_LISTED = 20;

/** The report for people: counts, suspects by reason, holes as ranges, and what this level did not look at. */
export function reportLines(verified: Verified, report: Report): string[] {
	const {level, files, done, suspects, unverifiable, unsupported} = report;
	if (files === 0) return ['no tensor files here', ...holeLines(report)];
	const speed = verified.seconds > 0 ? verified.freshBytes / 1e9 / verified.seconds : 0;
	const read = atLeast(level, 'crc') && verified.freshBytes > 0 ? `, ${speed.toFixed(2)} GB/s` : '';
	const lines = [
		`${level}: ${done} of ${files} files done, ${(report.bytes / 1e9).toFixed(2)} GB in ${report.seconds.toFixed(1)} s${read}`,
	];
	if (verified.remembered > 0) lines.push(`${verified.remembered} of them known from an earlier run`);
	lines.push(...byReason('suspect', suspects), ...byReason('unverifiable', unverifiable));
	lines.push(...byReason('unsupported', unsupported), ...holeLines(report));
	for (const [note, count] of notesOf(verified)) lines.push(`note: ${note} (${count} files)`);
	lines.push(...unchecked(verified, level).map(each => `not checked: ${each}`));
	return lines;
}

function byReason(kind: string, all: readonly Listed[]): string[] {
	const groups = new Map<string, Listed[]>();
	for (const each of all) {
		const reason = each.reason.split(':')[0] ?? '';
		groups.set(reason, [...(groups.get(reason) ?? []), each]);
	}
	return [...groups].flatMap(([reason, group]) => [
		`${kind}, ${reason}: ${group.length}`,
		...group
			.slice(0, MOST_LISTED)
			.map(({path, reason: words}) => `  ${path}  ${words.slice(reason.length + 2)}`.trimEnd()),
		...(group.length > MOST_LISTED ? [`  … and ${group.length - MOST_LISTED} more (--json lists all)`] : []),
	]);
}

function holeLines({holes}: Report): string[] {
	if (holes.length === 0) return [];
	const missing = holes.reduce((sum, [from, to]) => sum + to - from + 1, 0);
	const ranges = holes.slice(0, MOST_LISTED).map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`));
	const more = holes.length > MOST_LISTED ? ` … and ${holes.length - MOST_LISTED} more ranges` : '';
	return [`holes: ${missing} missing: ${ranges.join(', ')}${more}`];
}

function notesOf({files}: Verified): Map<string, number> {
	const notes = new Map<string, number>();
	for (const {notes: each} of files) for (const note of each) notes.set(note, (notes.get(note) ?? 0) + 1);
	return notes;
}

function unchecked({files}: Verified, level: Level): string[] {
	const words: string[] = [];
	if (!atLeast(level, 'crc')) words.push('tensor data (--level crc or values)');
	else if (files.some(({path}) => path.endsWith('.safetensors')))
		words.push('changed bits in safetensors files: the format has no checksums, only zeroed pages are seen');
	if (level === 'values' && !files.some(({normChecked}) => normChecked)) words.push('side of the norm (--norm FILE)');
	if (level === 'values' && files.every(({tokens}) => tokens === null))
		words.push('ids, masks, layers: no samples here');
	return words;
}

/** One line while it runs. */
export function progressWords({files, doneFiles, bytes, doneBytes, suspects}: Progress, seconds: number): string {
	const share = bytes > 0 ? doneBytes / bytes : doneFiles / Math.max(files, 1);
	const left = share > 0 ? Math.round((seconds / share) * (1 - share)) : 0;
	const rate = `${(doneFiles / seconds).toFixed(0)} files/s, ${(doneBytes / 1e9 / seconds).toFixed(2)} GB/s`;
	return `${doneFiles} of ${files} files, ${rate}, ${left} s left${suspects > 0 ? `, ${suspects} suspect` : ''}`;
}
