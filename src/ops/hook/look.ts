import {show} from '../command.ts';
import {ParseError} from '../outcome.ts';
import type {Target} from '../target.ts';
import {HOOK_FILE} from './own.ts';

/** What the server's own Python says of the package and the hook it would import. */
export type HookFacts = {
	readonly python: string;
	/** null: `find_spec('sglang')` finds nothing in that Python. */
	readonly sglang: ImportedPackage | null;
	/** The file in the configured source tree, which need not be the one that is imported. */
	readonly tree: SourceFile | null;
	readonly hook: {
		/** What a launch with the configured environment would load as `relight_hs`. */
		readonly importable: SourceFile | null;
		/** The file in the directory meant for it. */
		readonly placed: SourceFile | null;
	};
	readonly model: ModelShape | null;
	readonly status: HookStatus | null;
};

export type ImportedPackage = {
	readonly directory: string;
	/** From the installed metadata; a source tree on the path has none. */
	readonly version: string | null;
	readonly source: SourceFile | null;
	readonly bytecode: Bytecode | null;
	/** What launch_server takes, `--tp-size`; null when its source does not tell. */
	readonly flags: readonly string[] | null;
	/** Whether SGLang has the module that registers forward hooks. */
	readonly hooks: boolean;
};

/** `marked`: the source patch's marker is in it. */
export type SourceFile = {readonly path: string; readonly sha256: string; readonly marked: boolean};

/** `fits`: time and size in its header are the source's, so the interpreter runs it without reading the source. */
export type Bytecode = {readonly path: string; readonly state: BytecodeState; readonly marked: boolean};
export type BytecodeState = 'fits' | 'outdated' | 'checked by hash' | 'never checked' | 'other interpreter';

export type ModelShape = {
	readonly architecture: string | null;
	readonly layers: number | null;
	readonly hiddenSize: number | null;
};

/** From relight_hs.status.json: what the hook did in the server that last loaded it. */
export type HookStatus = {
	readonly pid: number | null;
	readonly moduleSha256: string | null;
	readonly slots: readonly string[];
	readonly written: number;
	readonly refused: number;
	readonly exceptions: number;
	readonly lastError: string | null;
	readonly savedAt: number | null;
};

/** What came of asking: facts, or why there are none. */
export type HookLook =
	| {readonly state: 'seen'; readonly facts: HookFacts}
	| {readonly state: 'unknown'; readonly why: string};

const LIMIT_S = 12;
export const LOOK_LIMIT_MS = (LIMIT_S + 3) * 1_000;
const MARK = 'relight-hook-look ';
const STATES: readonly BytecodeState[] = ['fits', 'outdated', 'checked by hash', 'never checked', 'other interpreter'];

/**
 * Runs the look (Python on standard input) with the environment of a launch, from `/`, as a transient unit would. A path on
 * a dead mount costs the limit and no more.
 */
export function lookScript({server, dump}: Target, directory: string, limitSeconds = LIMIT_S): string | null {
	if (!server) return null;
	const settings = Object.entries(server.env).map(([name, value]) => `${name}=${value}`);
	const words = [server.python, '-', dump?.dir ?? '', server.tree ?? '', server.model, directory];
	return `cd / && exec env ${show([...settings, 'timeout', '-k', '1', String(limitSeconds), ...words])}`;
}

/** The file of that name which the configuration restores tells where the hook is meant to lie; else the dump directory. */
export function hookDirectory({files, dump}: Target): string {
	const restored = files.find(({destination}) => destination.endsWith(`/${HOOK_FILE}`))?.destination;
	return restored?.slice(0, -HOOK_FILE.length - 1) ?? dump?.dir ?? '';
}

/** `output` is both streams of a look that ended with `status`; null when it did not end. */
export function readLook(python: string, status: number | null, output: string): HookLook {
	const unknown = (why: string): HookLook => ({state: 'unknown', why});
	if (status === null || status === 124 || status === 137)
		return unknown(`${python} did not answer: is a mount dead that sglang lies on?`);
	if (status !== 0) return unknown(`${python}: ${output.trim().split('\n').pop() || `exit ${status}`}`);
	try {
		return {state: 'seen', facts: parseLook(output)};
	} catch (error) {
		if (error instanceof ParseError) return unknown(`${python} gave no answer that fits: ${error.line.slice(0, 200)}`);
		throw error;
	}
}

/** The look's answer; a site file of that Python may print before it. Throws ParseError. */
export function parseLook(stdout: string): HookFacts {
	const line = stdout.split('\n').find(each => each.startsWith(MARK));
	if (line === undefined) throw new ParseError('python', stdout.trim().split('\n').pop() ?? '');
	let whole: unknown;
	try {
		whole = JSON.parse(line.slice(MARK.length));
	} catch {
		throw new ParseError('python', line);
	}
	const answer = record(whole);
	const hook = record(answer?.hook);
	if (!answer || typeof answer.python !== 'string' || !hook) throw new ParseError('python', line);
	return {
		python: answer.python,
		sglang: packageOf(record(answer.sglang), line),
		tree: sourceOf(record(answer.tree)),
		hook: {importable: sourceOf(record(hook.importable)), placed: sourceOf(record(hook.placed))},
		model: modelOf(record(answer.model)),
		status: statusOf(record(answer.status)),
	};
}

type Fields = Readonly<Record<string, unknown>>;

const record = (value: unknown): Fields | null =>
	value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Fields) : null;
const text = (value: unknown): string | null => (typeof value === 'string' ? value : null);
const count = (value: unknown): number | null => (Number.isSafeInteger(value) ? (value as number) : null);

function packageOf(value: Fields | null, line: string): ImportedPackage | null {
	if (!value) return null;
	const directory = text(value.directory);
	if (!directory) throw new ParseError('python', line);
	return {
		directory,
		version: text(value.version),
		source: sourceOf(record(value.source)),
		bytecode: bytecodeOf(record(value.bytecode)),
		flags: Array.isArray(value.flags) ? value.flags.filter(each => typeof each === 'string') : null,
		hooks: value.hooks === true,
	};
}

function sourceOf(value: Fields | null): SourceFile | null {
	const path = text(value?.path);
	const sha256 = text(value?.sha256);
	return path && sha256 ? {path, sha256, marked: value?.marked === true} : null;
}

function bytecodeOf(value: Fields | null): Bytecode | null {
	const path = text(value?.path);
	const state = STATES.find(each => each === value?.state);
	return path && state ? {path, state, marked: value?.marked === true} : null;
}

function modelOf(value: Fields | null): ModelShape | null {
	if (!value) return null;
	return {
		architecture: text(value.architecture),
		layers: count(value.layers),
		hiddenSize: count(value.hiddenSize),
	};
}

/** A file of the host's: whatever does not fit is left out, never a reason to give up. */
function statusOf(value: Fields | null): HookStatus | null {
	if (value?.schema !== 'relight.hook-status/1') return null;
	const sum = (counts: unknown) =>
		Object.values(record(counts) ?? {}).reduce<number>((total, each) => total + (count(each) ?? 0), 0);
	return {
		pid: count(record(value.server)?.pid),
		moduleSha256: text(value.module_sha256),
		slots: Array.isArray(value.slots) ? value.slots.map(String) : [],
		written: sum(value.written),
		refused: sum(value.refused),
		exceptions: count(value.exceptions) ?? 0,
		lastError: text(record(value.last_error)?.error),
		savedAt: count(value.saved_at),
	};
}
