import {quote} from '../command.ts';
import {manifestPath} from '../extract/manifest-path.ts';
import {isVolatile, parseMountinfo} from '../formats/mountinfo.ts';
import {DEFINE_MARK, mark, readSections} from '../formats/sections.ts';
import lookProgram from '../hook/look.py';
import {type HookLook, hookDirectory, lookScript, readLook} from '../hook/look.ts';
import {ParseError} from '../outcome.ts';
import type {Target} from '../target.ts';
import {capture, DEFINE_CAPTURE} from './capture.ts';
import type {Answer, Probe, ProbeContext} from './probe.ts';

/** Files that the work needs, asked for by path: is it there, is it whole, does it survive a boot. */
export type FilesFacts = {
	readonly files: readonly HostFile[];
	/** Version of the Node in the route's PATH, `20.19.2`; '' when there is none, null when that did not answer. */
	readonly node: string | null;
	/** Its processor in the kernel's word, `x86_64`; null when that did not come. */
	readonly machine: string | null;
	readonly patch: PatchFacts | null;
	/** What the server's own Python says of the package and the hook that it would import. null: no server. */
	readonly hook: HookLook | null;
};

export type HostFile = {
	readonly path: string;
	readonly role: 'script' | 'dataset' | 'manifest' | 'model' | 'patch' | 'python' | 'other';
	/** `differs`: there, but not the file that the configuration names by its hash. */
	readonly state: 'present' | 'gone' | 'differs' | 'no answer';
	readonly bytes: number | null;
	readonly sha256: string | null;
	readonly volatile: boolean;
};

/** Whether the dump patch's marker is in the source of the package. */
export type PatchFacts = {readonly path: string; readonly state: 'present' | 'absent' | 'no file'};

type Wanted = {
	readonly path: string;
	readonly role: HostFile['role'];
	readonly hash: boolean;
	readonly sha256: string | null;
};

const PATCHED = 'python/sglang/srt/models/deepseek_v2.py';
/** Hashes are for scripts and modules; anything larger is not one. */
const MOST_HASHED_BYTES = 16_777_216;
/** A Python that starts takes a tenth of a second; one on a dead mount never ends. */
const PYTHON_LIMIT_S = 5;
const ENDED = 'relight-look-ended ';
const SECTIONS = ['mounts', 'answers'] as const;

/**
 * One child per path, all into a pipe that is read for 8 s: a path on a dead mount costs only its own line. Hashes of small
 * files alone. What would dump hidden states only the server's Python can say: it is asked with a program on standard input.
 * Source: coreutils, uname, look.py.
 */
export const files: Probe<FilesFacts> = {
	id: 'files',
	lane: 'command-lines',
	everyMs: 60_000,
	limitMs: 14_000,
	capBytes: 1_048_576,
	script: ({target}) => {
		const wanted = wantedFiles(target);
		const {server} = target;
		if (wanted.length === 0) return null;
		const asks = [...wanted.map(({path, hash}, index) => `f ${index} ${quote(path)}${hash ? ' 1' : ''} &`), 'n &'];
		const patch = server?.tree ? [`k ${quote(`${server.tree}/${PATCHED}`)} &`] : [];
		return [
			DEFINE_MARK,
			DEFINE_CAPTURE,
			`${mark('mounts')}; cat "$PROC/self/mountinfo" 2>/dev/null || cat "$PROC/1/mountinfo" 2>/dev/null`,
			'n() { pr "u $(uname -m)"; pr "n $(timeout -k 1 3 node --version 2>/dev/null)"; }',
			`f() { ${capture('s', 2, 'stat -L --printf %s -- "$2"')}; h=; [ $r = 0 ] && [ "$3" ] && [ "$s" -le ${MOST_HASHED_BYTES} ] && h=$(timeout -k 1 4 sha256sum <"$2" 2>/dev/null); printf 'f %s %s %s %s\\n' "$1" $r "\${s:--}" "\${h%% *}"; }`,
			`k() { timeout -k 1 3 grep -q -e _hs_dump_dir -e SGLANG_HS_DUMP_DIR -- "$1" 2>/dev/null; echo "k $?"; }`,
			`${mark('answers')}; { ${[...asks, ...patch, ...hookLook(target)].join(' ')} } 2>/dev/null | timeout 8 cat; true`,
		].join('\n');
	},
	parse: parseFiles,
};

/** As a child of its own, its lines marked: a Python on a dead mount cannot be killed and must not be waited for. */
function hookLook(target: Target): readonly string[] {
	const look = lookScript(target, hookDirectory(target), PYTHON_LIMIT_S);
	if (look === null) return [];
	return [`{ ( ${look} ) 2>&1 <<'RELIGHT'\n${lookProgram}RELIGHT\necho "${ENDED}$?"; } | sed 's/^/h /' &`];
}

function wantedFiles({extraction, server, files: others}: Target): readonly Wanted[] {
	const wanted: Wanted[] = [];
	const plain = (path: string, role: HostFile['role']) => wanted.push({path, role, hash: false, sha256: null});
	if (extraction?.script) {
		const {destination, sha256} = extraction.script;
		wanted.push({path: destination, role: 'script', hash: true, sha256});
	}
	if (extraction) plain(extraction.dataset, 'dataset');
	if (extraction) plain(manifestPath(extraction.output), 'manifest');
	if (server) {
		plain(server.python, 'python');
		plain(server.model, 'model');
		if (server.tree) plain(`${server.tree}/${PATCHED}`, 'patch');
	}
	for (const {destination, sha256} of others) wanted.push({path: destination, role: 'other', hash: true, sha256});
	return wanted;
}

function parseFiles(answer: Answer, {target}: ProbeContext<FilesFacts>): FilesFacts {
	const sections = readSections('files', answer.stdout, SECTIONS);
	const table = sections.mounts.trim() === '' ? [] : parseMountinfo(sections.mounts);
	const lines = sections.answers.split('\n').filter(line => line !== '');
	const body = (kind: string) => lines.find(line => line.startsWith(`${kind} `))?.slice(2);
	const byIndex = new Map<number, readonly string[]>();
	for (const line of lines) {
		if (!line.startsWith('f ')) continue;
		const [, index = '', ...rest] = line.split(' ');
		if (rest.length !== 3) throw new ParseError('stat', line);
		byIndex.set(Number(index), rest);
	}
	const hostFiles = wantedFiles(target).map(({path, role, sha256: expected}, index): HostFile => {
		const [status = '124', size = '', hash = ''] = byIndex.get(index) ?? [];
		const sha256 = hash === '' ? null : hash;
		return {
			path,
			role,
			state: stateOf(status, sha256, expected),
			bytes: status === '0' && role !== 'model' ? Number(size) : null,
			sha256,
			volatile: isVolatile(path, table),
		};
	});
	const tree = target.server?.tree ?? null;
	return {
		files: hostFiles,
		node: nodeFrom(body('n')),
		machine: body('u')?.trim() || null,
		patch: tree === null ? null : patchFrom(`${tree}/${PATCHED}`, body('k')),
		hook: target.server === null ? null : hookFrom(target.server.python, lines),
	};
}

function hookFrom(python: string, lines: readonly string[]): HookLook {
	const text = lines.flatMap(line => (line.startsWith('h ') ? [line.slice(2)] : [])).join('\n');
	const at = text.lastIndexOf(ENDED);
	const status = at < 0 ? null : Number.parseInt(text.slice(at + ENDED.length), 10);
	return readLook(python, status, at < 0 ? text : text.slice(0, at));
}

const nodeFrom = (said: string | undefined): string | null =>
	said === undefined ? null : said.trim().replace(/^v/, '');

function stateOf(status: string, sha256: string | null, expected: string | null): HostFile['state'] {
	if (status === '124' || status === '137') return 'no answer';
	if (status !== '0') return 'gone';
	/** A hash that did not come proves nothing. */
	return expected !== null && sha256 !== null && sha256 !== expected ? 'differs' : 'present';
}

function patchFrom(path: string, status: string | undefined): PatchFacts | null {
	if (status === '0') return {path, state: 'present'};
	if (status === '1') return {path, state: 'absent'};
	return status === '2' ? {path, state: 'no file'} : null;
}
