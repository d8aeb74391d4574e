import {createHash} from 'node:crypto';
import {quote, show} from '../command.ts';
import {fresh} from '../facts.ts';
import type {FilesFacts} from '../probes/files.ts';
import type {BuiltExtractor, Executable, Target} from '../target.ts';
import {isRefusal, type Refusal, refuse, type Situation, type Step} from './operation.ts';

/** Node's own checksum came with 20.15; the rest of the extractor asks for what package.json says. */
const LEAST_NODE = [20, 19] as const;

/** The kernel's word for a processor, and Node's, of those that Node is published for. */
const ARCHITECTURES: Readonly<Record<string, string>> = {
	x86_64: 'x64',
	aarch64: 'arm64',
	ppc64le: 'ppc64',
	s390x: 's390x',
};

export type SentExtractor = {readonly steps: readonly Step[]; readonly argv: readonly string[]};

type Program = {readonly step: Step; readonly argv: readonly string[]};

/**
 * The built-in extractor as two files beside its log: the program, and the part of the configuration that it reads. Both
 * are checked by their sums on the host and put in place in one step. Where Node is there the program is one file for it;
 * where not, an executable with a Node inside. What changes carries the time of the plan in its name, so that a run that is
 * under way keeps its own.
 */
export function sendExtractor({target, facts, nowMs}: Situation, flags: readonly string[]): SentExtractor | Refusal {
	const {extraction} = target;
	if (!extraction?.built) return refuse('the extractor was not built here: npm run build, or set extraction.program');
	const directory = extraction.log.slice(0, extraction.log.lastIndexOf('/')) || '/';
	const place = `${directory}/relight-extractor-`;
	const program = programFor(extraction.built, fresh(facts.files), place, nowMs);
	if (isRefusal(program)) return program;
	const config = `${place}${nowMs.toString(36)}.json`;
	const text = `${JSON.stringify(configOf(target))}\n`;
	return {
		steps: [
			program.step,
			{
				kind: 'run',
				id: 'config',
				says: 'send what it is to extract',
				script: receive(config, createHash('sha256').update(text).digest('hex')),
				program: text,
				limitMs: 20_000,
			},
		],
		argv: [...program.argv, '--config', config, ...flags],
	};
}

function programFor(
	{bundle, executables, here}: BuiltExtractor,
	files: FilesFacts | null,
	place: string,
	nowMs: number,
): Program | Refusal {
	const node = files?.node ?? null;
	if (!files || node === null)
		return refuse('whether the host has Node is not known: the last look failed or has not come');
	if (isNewEnough(node)) return forNode(bundle, `${place}${nowMs.toString(36)}.mjs`);
	const lacks = `the host has ${node === '' ? 'no Node' : `Node ${node}`} in its PATH, ${LEAST_NODE.join('.')} is the least`;
	if (files.machine === null) return refuse(`${lacks}, and which processor it has is not known: look again`);
	const architecture = ARCHITECTURES[files.machine];
	if (!architecture)
		return refuse(`${lacks}, and there is none for its processor (${files.machine}): set extraction.program`);
	const executable = executables.find(each => each.architecture === architecture);
	if (executable) return alone(executable, `${place}${executable.sha256.slice(0, 16)}`);
	if (here === `linux-${architecture}`)
		return refuse(
			`${lacks}, and the executable that needs none was not built here: npm run build:standalone, then again`,
		);
	const others = executables.length === 0 ? '' : ` (the one here is for ${executables.map(each => each.architecture)})`;
	return refuse(
		`${lacks}, and an executable for its ${architecture} cannot be built on this ${here}${others}: npm run build:standalone on a linux-${architecture}, copy dist/relight-extractor-linux-${architecture} and its .json here, then again`,
	);
}

const forNode = (source: string, path: string): Program => ({
	step: {
		kind: 'send',
		id: 'program',
		says: 'send the extractor, check it on the host, put it in place in one step',
		source,
		sha256: null,
		script: receive(path, null),
		limitMs: 120_000,
	},
	argv: ['node', path],
});

/** Named by its content: the same one is sent once, and what lies there under that name is checked all the same. */
const alone = ({source, sha256, bytes}: Executable, path: string): Program => ({
	step: {
		kind: 'send',
		id: 'program',
		says: `send the extractor with a Node inside (${Math.round(bytes / 1e6)} MB, not where it is there already), check and try it on the host, put it in place in one step`,
		source,
		sha256,
		pieceBytes: PIECE_BYTES,
		script: receiveExecutable(path, sha256, Math.ceil(bytes / PIECE_BYTES)),
		limitMs: 60_000 + Math.ceil(bytes / SLOWEST_BYTES_PER_MS),
	},
	argv: [path],
});

/** One megabit per second; a piece is then a second long. */
const SLOWEST_BYTES_PER_MS = 125;
const PIECE_BYTES = 131_072;

function isNewEnough(version: string): boolean {
	const [major = 0, minor = 0] = version.split('.').map(Number);
	return major > LEAST_NODE[0] || (major === LEAST_NODE[0] && minor >= LEAST_NODE[1]);
}

/** Prints the sum, for the sender to compare; with one given, nothing else takes the place. */
function receive(path: string, sha256: string | null): string {
	const temporary = quote(`${path}.part`);
	const directory = quote(path.slice(0, path.lastIndexOf('/')) || '/');
	const check = sha256 === null ? '' : `echo ${show([`${sha256}  ${path}.part`])} | sha256sum -c --status && `;
	return `mkdir -p ${directory} && cat >${temporary} && sync ${temporary} && ${check}mv -f ${temporary} ${quote(path)} && sha256sum <${quote(path)}`;
}

/**
 * Reads nothing where it lies already, which ends the sending. Otherwise only what is whole and starts here takes the place:
 * a library that is missing or a mount that runs nothing says so now. A part is not left behind: the disk may be full.
 */
function receiveExecutable(path: string, sha256: string, pieces: number): string {
	return [
		`p=${quote(path)}`,
		'good() {',
		'  [ -f "$1" ] || return 1',
		`  [ "$(sha256sum <"$1")" = '${sha256}  -' ] || { echo "$1 is not what was sent"; return 1; }`,
		'  "$1" --version </dev/null',
		'}',
		'take() {',
		'  : >"$1" && n=0 || return',
		`  while [ $n -lt ${pieces} ]; do head -c ${PIECE_BYTES} >>"$1" || return; printf '\\006'; n=$((n+1)); done`,
		'}',
		'good "$p" || {',
		'  mkdir -p "${p%/*}/" && take "$p.part" && chmod 755 "$p.part" && sync "$p.part" && good "$p.part" && mv -f "$p.part" "$p"',
		'} || { r=$?; rm -f "$p.part"; exit $r; }',
		'sha256sum <"$p"',
	].join('\n');
}

/** The configuration as the extractor reads it: JSON is YAML. */
function configOf({name, server, dump, extraction}: Target): object {
	if (!extraction) return {};
	const {records, tokens, keepFreeBytes, continuity} = extraction;
	const {dataset, output, layout, groupSize, hiddenSize, maxTokens, overlength, concurrency, progress, log} =
		extraction;
	return {
		hosts: {[name]: {routes: [{local: true}]}},
		...(server && {
			server: {
				python: server.python,
				...(server.tree && {tree: server.tree}),
				model: server.model,
				port: server.port,
				args: server.args,
				log: server.log,
				name: server.name,
			},
		}),
		...(dump && {dump: {dir: dump.dir, ...(dump.limitBytes !== null && {limit: dump.limitBytes})}}),
		extraction: {
			dataset,
			expect: {...(records !== null && {records}), ...(tokens !== null && {tokens})},
			output,
			layout,
			groupSize,
			hiddenSize,
			maxTokens,
			overlength,
			concurrency,
			progress,
			log,
			...(continuity !== undefined && {continuity}),
			...(keepFreeBytes !== undefined && {keepFree: keepFreeBytes}),
		},
	};
}
