import {END_RECORD_BYTES, safetensorsTrouble, zipEndTrouble} from '../formats/end-record.ts';
import {readHeaded} from '../formats/headed-files.ts';
import {ParseError} from '../outcome.ts';
import type {ExtractionConfig} from '../target.ts';
import type {Inventory, InventoryFile, InventoryGroup} from './extraction.ts';
import {holesOf, rangeOf, sampleNames} from './inventory-ranges.ts';

export {filesToCheck, groupsToList, sampleNames} from './inventory-ranges.ts';

export type Listing = {
	readonly config: ExtractionConfig;
	readonly before: Inventory | null;
	/** `NAME TIME [n]` per group directory; `n`: its files are in `files`. */
	readonly groups: string;
	/** Names of the groups that were listed, one a line, then `GROUP/NAME SIZE TIME` per file. */
	readonly files: string;
	/** `GROUP/NAME SIZE TIME` of the files whose ends were read, as they are now. */
	readonly sizes: string;
	/** Ends (or heads) under `==> GROUP/NAME <==`, one character per byte. */
	readonly tails: string;
	readonly quarantined: number;
};

/** The inventory after a look: groups that did not change stay the same objects, and so does an inventory without news. */
export function updateInventory({config, before, groups, files, sizes, tails, quarantined}: Listing): Inventory {
	const listed = readFiles(files);
	const earlier = new Map((before?.groups ?? []).map(group => [group.name, group]));
	const ends = readEnds(sizes, tails, config.layout);
	const now = readGroups(groups)
		.map(({name, modifiedAt}) => {
			const known = earlier.get(name) ?? null;
			const entries = listed.get(name);
			const range = rangeOf(name, config);
			if (range === null) return null;
			if (entries) return withEnds(listGroup({name, ...range, modifiedAt}, entries, known, config), ends.get(name));
			if (known?.modifiedAt === modifiedAt) return withEnds(known, ends.get(name));
			const stale = known ?? listGroup({name, ...range, modifiedAt: 0}, [], null, config);
			return withEnds({...stale, modifiedAt: 0}, ends.get(name));
		})
		.filter(group => group !== null)
		.sort((a, b) => a.from - b.from);
	const same = before?.groups.length === now.length && now.every((group, at) => group === before.groups[at]);
	if (same && before.quarantined === quarantined && before.expected === config.records) return before;
	return summarise(now, config, quarantined);
}

type FileEntry = {readonly name: string; readonly bytes: number; readonly modifiedAt: number};

function readGroups(text: string): {name: string; modifiedAt: number}[] {
	return text
		.split('\n')
		.filter(line => line !== '')
		.map(line => {
			const [name = '', time = ''] = line.split(' ');
			if (time === '') throw new ParseError('find', line);
			return {name, modifiedAt: toMs(time)};
		});
}

const toMs = (seconds: string) => Math.round(Number(seconds) * 1000);

function readFiles(text: string): ReadonlyMap<string, readonly FileEntry[]> {
	const groups = new Map<string, FileEntry[]>();
	for (const line of text.split('\n')) {
		if (line === '') continue;
		const slash = line.indexOf('/');
		if (slash < 0) groups.set(line, []);
		else groups.get(line.slice(0, slash))?.push(readEntry(line, slash));
	}
	return groups;
}

function readEntry(line: string, slash: number): FileEntry {
	const time = line.lastIndexOf(' ');
	const size = line.lastIndexOf(' ', time - 1);
	const bytes = Number(line.slice(size + 1, time));
	if (size < 0 || !Number.isFinite(bytes)) throw new ParseError('find', line);
	return {name: line.slice(slash + 1, size), bytes, modifiedAt: toMs(line.slice(time + 1))};
}

type GroupHead = Pick<InventoryGroup, 'name' | 'from' | 'to' | 'modifiedAt'>;

/** Temporary files are counted apart and never as present; what has no sample's name is not ours. */
function listGroup(
	head: GroupHead,
	entries: readonly FileEntry[],
	known: InventoryGroup | null,
	config: ExtractionConfig,
): InventoryGroup {
	const {pattern} = sampleNames(config.layout);
	const files = new Map<number, InventoryFile>();
	let temporaries = 0;
	/** A group may be listed twice in one look. */
	for (const {name, bytes, modifiedAt} of new Map(entries.map(entry => [entry.name, entry])).values()) {
		const index = pattern.exec(name)?.[1];
		if (index === undefined) temporaries += name.includes('.tmp') ? 1 : 0;
		else {
			const before = known?.files.get(Number(index));
			const untouched = before?.name === name && before.bytes === bytes && before.modifiedAt === modifiedAt;
			files.set(Number(index), untouched ? before : {name, bytes, modifiedAt, ...judgeSize(bytes)});
		}
	}
	const same =
		known?.modifiedAt === head.modifiedAt &&
		known.temporaries === temporaries &&
		known.files.size === files.size &&
		[...files].every(([index, file]) => known.files.get(index) === file);
	return same ? known : {...head, ...totals(files), temporaries, files};
}

const judgeSize = (bytes: number): Pick<InventoryFile, 'whole' | 'suspect'> => {
	if (bytes === 0) return {whole: false, suspect: 'empty'};
	if (bytes < END_RECORD_BYTES) return {whole: false, suspect: 'too short for an end record'};
	return {whole: null, suspect: null};
};

function totals(files: ReadonlyMap<number, InventoryFile>) {
	let bytes = 0;
	let newestAt: number | null = null;
	let unchecked = 0;
	for (const file of files.values()) {
		bytes += file.bytes;
		if (newestAt === null || file.modifiedAt > newestAt) newestAt = file.modifiedAt;
		if (file.whole === null) unchecked += 1;
	}
	return {present: files.size, bytes, newestAt, unchecked};
}

type End = {
	readonly name: string;
	readonly bytes: number;
	readonly modifiedAt: number;
	readonly trouble: string | null;
};

/** Verdicts by group. Size and time are those of the same moment: a file may have grown since it was listed. */
function readEnds(
	sizes: string,
	tails: string,
	layout: ExtractionConfig['layout'],
): ReadonlyMap<string, readonly End[]> {
	const now = new Map<string, FileEntry>();
	for (const line of sizes.split('\n')) {
		if (line === '') continue;
		const path = line.replace(/^\.\//, '');
		const entry = readEntry(path, path.indexOf('/'));
		now.set(path.slice(0, path.lastIndexOf(' ', path.lastIndexOf(' ') - 1)), entry);
	}
	const ends = new Map<string, End[]>();
	for (const [header, tail] of readHeaded(tails)) {
		const path = header.replace(/^\.\//, '');
		const entry = now.get(path);
		if (!entry) continue;
		const trouble = layout === 'speculators' ? safetensorsTrouble(tail, entry.bytes) : zipEndTrouble(tail, entry.bytes);
		const slash = path.indexOf('/');
		const group = slash < 0 ? '.' : path.slice(0, slash);
		const found = ends.get(group) ?? [];
		found.push({...entry, name: path.slice(slash + 1), trouble});
		ends.set(group, found);
	}
	return ends;
}

function withEnds(group: InventoryGroup, ends: readonly End[] | undefined): InventoryGroup {
	if (!ends) return group;
	const files = new Map(group.files);
	let news = false;
	for (const {name, bytes, modifiedAt, trouble} of ends) {
		const index = Number(/_(\d+)\./.exec(name)?.[1] ?? -1);
		const before = files.get(index);
		const now = {name, bytes, modifiedAt, whole: trouble === null, suspect: trouble};
		if (before?.name !== name || isSame(before, now)) continue;
		files.set(index, now);
		news = true;
	}
	return !news ? group : {...group, ...totals(files), files};
}

const isSame = (a: InventoryFile, b: InventoryFile): boolean =>
	a.bytes === b.bytes && a.modifiedAt === b.modifiedAt && a.whole === b.whole && a.suspect === b.suspect;

function summarise(groups: readonly InventoryGroup[], config: ExtractionConfig, quarantined: number): Inventory {
	const suspects: Inventory['suspects'][number][] = [];
	let complete = 0;
	let newest: {at: number; path: string} | null = null;
	for (const group of groups) {
		const folder = group.name === '.' ? '' : `${group.name}/`;
		for (const [index, file] of group.files) {
			if (file.whole) complete += 1;
			const path = `${folder}${file.name}`;
			if (file.suspect !== null) suspects.push({index, path: `${config.output}/${path}`, reason: file.suspect});
			if (newest === null || file.modifiedAt >= newest.at) newest = {at: file.modifiedAt, path};
		}
	}
	const sum = (of: (group: InventoryGroup) => number) => groups.reduce((total, group) => total + of(group), 0);
	return {
		expected: config.records,
		present: sum(group => group.present),
		complete,
		holes: holesOf(groups),
		suspects: suspects.sort((a, b) => a.index - b.index),
		groups,
		bytes: sum(group => group.bytes),
		newestAt: newest?.at ?? null,
		newestPath: newest ? `${config.output}/${newest.path}` : null,
		temporaries: sum(group => group.temporaries),
		quarantined,
	};
}
