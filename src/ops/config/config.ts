import {isMap, isNode, LineCounter, type Pair, parseDocument} from 'yaml';
import type {z} from 'zod';
import type {ExtractionConfig, RouteConfig, ServerConfig, Target} from '../target.ts';
import {SYSTEM_ENVIRONMENT} from '../transports/transport.ts';
import {type ConfigFile, fileSchema} from './schema.ts';

/** One thing wrong with the file. `line` is 1-based; `key` is the path with dots. */
export type ConfigTrouble = {
	readonly file: string;
	readonly line: number;
	readonly key: string;
	readonly expected: string;
};

export type ConfigResult =
	| {readonly ok: true; readonly targets: readonly Target[]}
	| {readonly ok: false; readonly troubles: readonly ConfigTrouble[]};

/** Text → targets, or everything that is wrong with it. Pure. Source: relight.yaml, YAML 1.2. */
export function readConfig(text: string, file: string): ConfigResult {
	const lines = new LineCounter();
	const document = parseDocument(text, {lineCounter: lines, prettyErrors: true});
	if (document.errors.length > 0) {
		const troubles = document.errors.map(error => ({
			file,
			line: lines.linePos(error.pos[0]).line,
			key: '',
			expected: error.message.split('\n')[0]?.replace(/ at line.*$/, '') ?? 'YAML',
		}));
		return {ok: false, troubles};
	}
	const parsed = fileSchema.safeParse(document.toJS() ?? {});
	if (parsed.success) return {ok: true, targets: targetsOf(parsed.data)};
	const troubles = parsed.error.issues.map(issue => {
		const path = issue.code === 'unrecognized_keys' ? [...issue.path, issue.keys[0] ?? ''] : issue.path;
		return {file, line: lineOf(document.contents, path, lines), key: path.join('.'), expected: words(issue)};
	});
	return {ok: false, troubles};
}

export const showTrouble = ({file, line, key, expected}: ConfigTrouble): string =>
	`${file}:${line}: ${key ? `${key}: ` : ''}${expected}`;

function words(issue: z.core.$ZodIssue): string {
	if (issue.code === 'unrecognized_keys') return 'no such setting';
	if (issue.code === 'invalid_type') {
		const received = /received (\w+)$/.exec(issue.message)?.[1];
		return `expected ${issue.expected}, ${received === 'undefined' ? 'it is missing' : `not ${received}`}`;
	}
	if (issue.code === 'invalid_union') return 'expected one of the forms the documentation shows';
	return issue.message;
}

/** The line of the key itself, or of the nearest parent that is there. */
function lineOf(contents: unknown, path: readonly PropertyKey[], lines: LineCounter): number {
	let node: unknown = contents;
	let offset = 0;
	for (const key of path) {
		if (isMap(node)) {
			const pair = node.items.find(
				(item: Pair) => String(isNode(item.key) ? item.key.toJSON() : item.key) === String(key),
			);
			if (!pair) break;
			if (isNode(pair.key) && pair.key.range) offset = pair.key.range[0];
			node = pair.value;
		} else if (isNode(node) && 'items' in node && Array.isArray(node.items)) {
			node = node.items[Number(key)];
			if (isNode(node) && node.range) offset = node.range[0];
		} else break;
	}
	return lines.linePos(offset).line;
}

function targetsOf(file: ConfigFile): Target[] {
	return Object.entries(file.hosts).map(([name, host]) => ({
		name,
		routes: host.routes.map(routeOf),
		expect: {
			gpus: host.expect?.gpus ?? null,
			...(host.expect?.links && {links: host.expect.links}),
			mounts: Object.entries(host.expect?.mounts ?? {}).map(([path, mount]) => ({
				path,
				type: mount?.type ?? null,
				source: mount?.source ?? null,
				volume: mount?.volume ?? null,
				freeBytes: mount?.free ?? null,
			})),
		},
		unwanted: host.unwanted,
		server: file.server ? serverOf(file.server) : null,
		dump: file.dump ? {dir: file.dump.dir, limitBytes: file.dump.limit ?? null} : null,
		extraction: file.extraction ? extractionOf(file.extraction) : null,
		files: file.files.map(each => ({...each, sha256: each.sha256?.toLowerCase() ?? null})),
	}));
}

function routeOf(route: ConfigFile['hosts'][string]['routes'][number]): RouteConfig {
	const given = Object.fromEntries(Object.entries(route.environment ?? {}).filter(([, value]) => value !== undefined));
	return {
		ssh: route.ssh ?? null,
		through: route.through ?? null,
		identityFile: route.key ?? null,
		knownHostsFile: route.knownHosts ?? null,
		sshConfigFile: route.sshConfig,
		environment: {...SYSTEM_ENVIRONMENT, ...given},
	};
}

function serverOf({phaseLimit, ...server}: NonNullable<ConfigFile['server']>): ServerConfig {
	return {...server, tree: server.tree ?? null, phaseLimitMs: phaseLimit * 1_000};
}

function extractionOf(extraction: NonNullable<ConfigFile['extraction']>): ExtractionConfig {
	const {expect, script, confirm, keepFree, ...rest} = extraction;
	const beside = rest.output.replace(/\/[^/]*\/?$/, '');
	return {
		...rest,
		records: expect?.records ?? null,
		tokens: expect?.tokens ?? null,
		...(expect?.sha256 && {sha256: expect.sha256.toLowerCase()}),
		progress: rest.progress ?? `${beside}/extraction-progress.json`,
		log: script?.log ?? rest.log ?? `${beside}/extraction.log`,
		program: rest.program ?? null,
		config: rest.config ?? null,
		confirmMs: confirm * 1_000,
		keepFreeBytes: keepFree,
		script: script ? {...script, sha256: script.sha256?.toLowerCase() ?? null} : null,
	};
}

/** Without a configuration: this machine, watched; operations say what they miss. */
export const LOCAL_TARGET: Target = {
	name: 'local',
	routes: [{ssh: null, through: null, identityFile: null, knownHostsFile: null, environment: SYSTEM_ENVIRONMENT}],
	expect: {gpus: null, mounts: []},
	unwanted: [],
	server: null,
	dump: null,
	extraction: null,
	files: [],
};
