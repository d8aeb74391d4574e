import {createHash} from 'node:crypto';
import {quote, show} from '../command.ts';
import {fresh} from '../facts.ts';
import type {Target} from '../target.ts';
import {type Refusal, refuse, type Situation, type Step} from './operation.ts';

/** Node's own checksum came with 20.15; the rest of the extractor asks for what package.json says. */
const LEAST_NODE = [20, 19] as const;

export type SentExtractor = {readonly steps: readonly Step[]; readonly argv: readonly string[]};

/**
 * The built-in extractor as two files beside its log: the program, and the part of the configuration that it reads. Both
 * are checked by their sums on the host and put in place in one step. Names carry the time of the plan, so that a run that
 * is under way keeps its own.
 */
export function sendExtractor({target, facts, nowMs}: Situation, flags: readonly string[]): SentExtractor | Refusal {
	const {extraction} = target;
	const node = fresh(facts.files)?.node;
	if (!extraction?.bundle) return refuse('the extractor was not built here: npm run build, or set extraction.program');
	if (node === undefined || node === null)
		return refuse('whether the host has Node is not known: the last look failed or has not come');
	if (!isNewEnough(node))
		return refuse(
			`the host has ${node === '' ? 'no Node' : `Node ${node}`} in its PATH, ${LEAST_NODE.join('.')} is the least: install one, or set extraction.program`,
		);
	const directory = extraction.log.slice(0, extraction.log.lastIndexOf('/')) || '/';
	const program = `${directory}/relight-extractor-${nowMs.toString(36)}.mjs`;
	const config = `${directory}/relight-extractor-${nowMs.toString(36)}.json`;
	const text = `${JSON.stringify(configOf(target))}\n`;
	return {
		steps: [
			{
				kind: 'send',
				id: 'program',
				says: 'send the extractor, check it on the host, put it in place in one step',
				source: extraction.bundle,
				sha256: null,
				script: receive(program, null),
				limitMs: 120_000,
			},
			{
				kind: 'run',
				id: 'config',
				says: 'send what it is to extract',
				script: receive(config, createHash('sha256').update(text).digest('hex')),
				program: text,
				limitMs: 20_000,
			},
		],
		argv: ['node', program, '--config', config, ...flags],
	};
}

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
