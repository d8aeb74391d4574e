import {quote} from '../command.ts';
import {isVolatile, type MountLine, parseMountinfo, parseMounts} from '../formats/mountinfo.ts';
import {DEFINE_MARK, mark, readSections} from '../formats/sections.ts';
import {Complaint, ParseError} from '../outcome.ts';
import type {ExpectedMount} from '../target.ts';
import {unexpectedWords} from './mount-expectation.ts';
import {isListed, isSized, NEVER_BLOCKS_FIRST, writableOf} from './mount-rules.ts';
import type {Answer, Probe, ProbeContext} from './probe.ts';

/** Every mount that is not a pseudo file system, in the kernel's order; over-mounts marked. From mountinfo: never blocks. */
export type MountFacts = {readonly mounts: readonly Mount[]; readonly missing: readonly string[]};

export type Mount = {
	/** The kernel's mount id: one per line of mountinfo, over-mounts included. */
	readonly id: number;
	/** Major:minor; the identity of the file system. */
	readonly device: string;
	readonly path: string;
	readonly root: string;
	readonly type: string;
	readonly source: string;
	readonly volatile: boolean;
	/** A later line covers this one. */
	readonly covered: boolean;
	/** `emergency` is ext4's read-only after an error, where options still say rw. */
	readonly writable: 'yes' | 'read-only mount' | 'read-only superblock' | 'emergency read-only';
	readonly size: MountSize;
	/** What is wrong with it against the configuration, in words; null when as expected or not expected at all. */
	readonly unexpected: string | null;
	readonly expected: boolean;
};

export type MountSize =
	| {
			readonly kind: 'answered';
			readonly totalBytes: number;
			readonly availableBytes: number;
			readonly inodes: number;
			readonly inodesFree: number;
	  }
	/** No answer within the limit; `since` is when the first look without an answer was made (epoch ms). */
	| {
			readonly kind: 'hung';
			readonly since: number;
			readonly childPid: number | null;
			readonly childStartTicks: number | null;
	  }
	| {readonly kind: 'failed'; readonly says: string}
	| {readonly kind: 'not asked'};

const SECTIONS = ['table', 'mounts', 'volumes', 'sizes'] as const;
/** Scripts stay small: mounts beyond this are listed without a size; expected ones and `/` come first. */
const MOST_CHARACTERS = 800;

/**
 * The list comes from mountinfo alone. Sizes by one child per mount, all into a pipe that is read for 2 s: a mount without an
 * answer is hung, keeps its child, and is left out until that child is gone, so there is one orphan per mount at most. The
 * first look sizes what mountinfo shows without escapes; later ones what was listed. Source: /proc/self/mountinfo and
 * `stat -f` of coreutils; fixtures/mountinfo, fixtures/stat-f.
 */
export const mounts: Probe<MountFacts> = {
	id: 'mounts',
	lane: 'mounts',
	everyMs: 5000,
	limitMs: 8000,
	capBytes: 1_048_576,
	script: context => {
		const {last, target} = context;
		const volumes = target.expect.mounts.flatMap(({volume}) => (volume === null ? [] : [volume]));
		return [
			DEFINE_MARK,
			`set -f; ${mark('table')}; cat "$PROC/self/mountinfo" 2>/dev/null || cat "$PROC/1/mountinfo" 2>/dev/null || m=1`,
			`${mark('mounts')}; [ "$m" ] && cat "$PROC/mounts" 2>/dev/null`,
			`${mark('volumes')}; for v in ${volumes.map(quote).join(' ')}; do echo "$v $(readlink "$DEV/disk/by-uuid/$v")"; done`,
			's() { s=; { while IFS= read -r l || [ -n "$l" ]; do s="$s$l "; done <"$PROC/$1/stat"; } 2>/dev/null; set -- ${s##*) }; z=$1; t=${20}; }',
			'a() { { { s=$(stat -f -c "%S %b %f %a %c %d" -- "$2" 2>&1); printf "a %s %s %s\\n" "$1" $? "$s"; [ "$3" ] && printf "i %s %s\\n" "$1" "$(head -c 64 -- "$2/.volume-id" 2>/dev/null)"; } 2>/dev/null & }; s $!; echo "c $1 $! $t"; }',
			'h() { kill -0 $2 2>/dev/null && { s $2; [ "$z" != Z ] && { [ -z "$t" ] || [ "$t" = "$3" ]; }; } && echo "h $1" || a $1 "$4" $5; }',
			`${mark('sizes')}; { ${last === null ? firstSizes(target.expect.mounts) : laterSizes(last, target.expect.mounts)}; } | timeout 2 cat; true`,
		].join('\n');
	},
	parse: parseMountFacts,
};

const expectedAt = (path: string, expected: readonly ExpectedMount[]) => expected.find(mount => mount.path === path);

/** Nothing is known yet: the shell picks from mountinfo itself, by type, paths without escapes only. */
function firstSizes(expected: readonly ExpectedMount[]): string {
	const named = expected.map(({path}) => quote(path)).join('|');
	const choice = `${named === '' ? '' : `${named}) a $i "$p" 1 ;; `}/dev/shm) a $i "$p" ;; *) case $r in ${NEVER_BLOCKS_FIRST}) a $i "$p" ;; esac ;;`;
	return `cat "$PROC/self/mountinfo" 2>/dev/null | while read -r i x y z p r; do case $p in *\\\\*) ;; ${choice} esac; done`;
}

function laterSizes(last: MountFacts, expected: readonly ExpectedMount[]): string {
	const devices = new Set<string>();
	const lines: string[] = [];
	const first = (mount: Mount) => (mount.expected || mount.path === '/' ? 0 : 1);
	for (const mount of [...last.mounts].sort((a, b) => first(a) - first(b))) {
		const wanted = expectedAt(mount.path, expected);
		if (mount.covered || !isSized(mount, wanted !== undefined)) continue;
		/** One question per file system: bind mounts of it share the answer. */
		if (mount.device !== '' && devices.has(mount.device) && !wanted) continue;
		devices.add(mount.device);
		const {size} = mount;
		const mark = wanted?.volume ? ' 1' : '';
		if (size.kind === 'hung' && size.childPid !== null)
			lines.push(`h ${mount.id} ${size.childPid} ${size.childStartTicks ?? "''"} ${quote(mount.path)}${mark}`);
		else lines.push(`a ${mount.id} ${quote(mount.path)}${mark}`);
		if (lines.join('; ').length > MOST_CHARACTERS) {
			lines.pop();
			break;
		}
	}
	return lines.length === 0 ? ':' : lines.join('; ');
}

function parseMountFacts(answer: Answer, context: ProbeContext<MountFacts>): MountFacts {
	const {last, target, hints} = context;
	const sections = readSections('mounts', answer.stdout, SECTIONS);
	const lines = sections.table.trim() === '' ? parseMounts(sections.mounts) : parseMountinfo(sections.table);
	if (lines.length === 0)
		throw new Complaint('mountinfo', 'no mount table', 'this route gives no /proc: check its settings');
	const answers = readSizes(sections.sizes);
	const before = new Map((last?.mounts ?? []).map(mount => [mount.id, mount]));
	const byDevice = new Map<string, MountSize>();
	for (const line of lines) {
		const size = line.covered ? undefined : answers.sizes.get(line.id);
		if (size && line.device !== '') byDevice.set(line.device, size);
	}
	const volumes = new Map(
		sections.volumes
			.split('\n')
			.filter(line => line !== '')
			.map(line => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)] as const),
	);
	const expectations = target.expect.mounts;
	const mounts = lines
		.filter(line => isListed(line, expectedAt(line.path, expectations) !== undefined))
		.map((line): Mount => {
			const expected = line.covered ? undefined : expectedAt(line.path, expectations);
			const earlier = before.get(line.id);
			const size = sizeOf(line, {answers, byDevice, earlier, nowMs: hints.nowMs});
			const markerVolume = answers.volumes.get(line.id) ?? null;
			const linkTarget = expected?.volume ? (volumes.get(expected.volume) ?? '') : '';
			return {
				id: line.id,
				device: line.device,
				path: line.path,
				root: line.root,
				type: line.type,
				source: line.source,
				volatile: isVolatile(line.path, [line]),
				covered: line.covered,
				writable: writableOf(line),
				size,
				unexpected: expected ? unexpectedWords(expected, line, size, {markerVolume, linkTarget}) : null,
				expected: expected !== undefined,
			};
		});
	const visible = new Set(lines.map(line => line.path));
	return {mounts, missing: expectations.map(({path}) => path).filter(path => !visible.has(path))};
}

type Child = {readonly pid: number; readonly startTicks: number | null};
type Sizes = {
	readonly sizes: ReadonlyMap<number, MountSize>;
	readonly volumes: ReadonlyMap<number, string>;
	/** Children started in this look, by mount id. */
	readonly children: ReadonlyMap<number, Child>;
	/** Mounts whose earlier child still hangs. */
	readonly hung: ReadonlySet<number>;
};

/** `a ID STATUS TEXT` an answer, `i ID TEXT` a volume id, `c ID PID TICKS` a child, `h ID` an earlier child still there. */
function readSizes(text: string): Sizes {
	const sizes = new Map<number, MountSize>();
	const volumes = new Map<number, string>();
	const children = new Map<number, Child>();
	const hung = new Set<number>();
	for (const line of text.split('\n')) {
		const match = /^([aich]) (\d+) ?(.*)$/.exec(line);
		if (!match) continue;
		const [, kind, number, rest = ''] = match;
		const id = Number(number);
		if (kind === 'h') hung.add(id);
		else if (kind === 'i') volumes.set(id, rest.trim());
		else if (kind === 'a') sizes.set(id, sizeFrom(rest, line));
		else {
			const [pid = '', ticks = ''] = rest.split(' ');
			children.set(id, {pid: Number(pid), startTicks: ticks === '' ? null : Number(ticks)});
		}
	}
	return {sizes, volumes, children, hung};
}

function sizeFrom(rest: string, line: string): MountSize {
	const blank = rest.indexOf(' ');
	const status = rest.slice(0, blank);
	const says = rest.slice(blank + 1).trim();
	if (status !== '0') return {kind: 'failed', says: says.replace(/^stat: /, '')};
	const numbers = says.split(' ').map(Number);
	const [block = Number.NaN, blocks = Number.NaN, , available = Number.NaN, inodes = 0, inodesFree = 0] = numbers;
	if (numbers.length !== 6 || numbers.some(number => !Number.isFinite(number))) throw new ParseError('stat -f', line);
	return {kind: 'answered', totalBytes: block * blocks, availableBytes: block * available, inodes, inodesFree};
}

function sizeOf(
	line: MountLine,
	{
		answers,
		byDevice,
		earlier,
		nowMs,
	}: {answers: Sizes; byDevice: ReadonlyMap<string, MountSize>; earlier: Mount | undefined; nowMs: number},
): MountSize {
	if (line.covered) return {kind: 'not asked'};
	const answered = answers.sizes.get(line.id) ?? byDevice.get(line.device);
	if (answered) return answered;
	const before = earlier?.size ?? {kind: 'not asked'};
	if (answers.hung.has(line.id)) return before;
	const child = answers.children.get(line.id);
	if (!child) return before.kind === 'hung' ? before : {kind: 'not asked'};
	return {
		kind: 'hung',
		since: before.kind === 'hung' ? before.since : nowMs,
		childPid: child.pid,
		childStartTicks: child.startTicks,
	};
}
