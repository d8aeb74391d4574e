import {existsSync, readFileSync} from 'node:fs';
import {basename, dirname} from 'node:path';
import type {ServerConfig} from '../target.ts';
import {commitFile} from './commit.ts';
import type {Dataset} from './dataset.ts';
import type {FilePort} from './file-port.ts';
import {keysOf} from './forms.ts';
import {type Extraction, layoutOf} from './layouts.ts';
import {manifestPath} from './manifest-path.ts';

/** Why a run does not go on although it could: what is there does not belong to what is asked for. Exit status 4. */
export class Refusal extends Error {}

/** What must be the same for two files to belong to one tree. A null is not known yet, and differs from nothing. */
export type Identity = Readonly<Record<string, string | number | null>>;

export type ServerIdentity = {readonly modelPath: string | null; readonly version: string | null};

export type Manifest = {
	readonly schema: 'relight.run/1';
	readonly createdAt: string;
	readonly tool: string;
	/** Set for a tree that was there before this manifest: how many files were taken over, and how they were looked at. */
	readonly adopted: {readonly files: number; readonly proof: string} | null;
	readonly identity: Identity;
};

export function identityOf(extraction: Extraction, server: Pick<ServerConfig, 'model'>, dataset: Dataset): Identity {
	return {
		'dataset.sha256': dataset.sha256,
		'dataset.records': dataset.records,
		'dataset.order': dataset.order,
		model: withoutSlash(server.model),
		'server.modelPath': null,
		'server.version': null,
		output: basename(extraction.output),
		layout: extraction.layout,
		layers: null,
		keys: keysOf(layoutOf(extraction).form),
		norm: null,
		hiddenSize: extraction.hiddenSize,
		dtype: 'bf16',
		maxTokens: extraction.maxTokens,
		overlength: extraction.overlength,
		groupSize: extraction.groupSize,
	};
}

const withoutSlash = (path: string): string => path.replace(/(?<=.)\/+$/, '');

const isKnown = (value: string | number | null | undefined): boolean =>
	value !== null && value !== undefined && value !== 'unknown';

/** Each field that differs, `name: old, now new`; empty when the two can be one run. */
export function differences(old: Identity, now: Identity): string[] {
	return [...new Set([...Object.keys(old), ...Object.keys(now)])]
		.filter(key => isKnown(old[key]) && isKnown(now[key]) && old[key] !== now[key])
		.map(key => `${key}: ${old[key]}, now ${now[key]}`);
}

/** Throws Refusal when it names another run. */
export function refuseDifferent(path: string, old: Identity, now: Identity): void {
	const found = differences(old, now);
	if (found.length > 0) throw new Refusal(`${path} is of another run: ${found.join('; ')}`);
}

/** null when there is none; Refusal when there is one that cannot be read. */
export function readManifest(path: string): Manifest | null {
	if (!existsSync(path)) return null;
	try {
		const manifest: Manifest = JSON.parse(readFileSync(path, 'utf8'));
		if (manifest.schema === 'relight.run/1' && typeof manifest.identity === 'object') return manifest;
	} catch {}
	throw new Refusal(`${path} is no manifest that this version can read: move it away, then --adopt looks at the tree`);
}

export function writeManifest(files: FilePort, path: string, manifest: Manifest): void {
	const text = Buffer.from(`${JSON.stringify(manifest, null, '\t')}\n`);
	files.remove(`${dirname(path)}/.${basename(path)}.${process.pid}.tmp`);
	commitFile(files, path, [text]);
}

/** What the server and its dumps say of themselves: compared, and remembered once it is known. Throws Refusal. */
export function learn(files: FilePort, output: string, manifest: Manifest, found: Identity): Manifest {
	const path = manifestPath(output);
	refuseDifferent(path, manifest.identity, found);
	const {model = null} = manifest.identity;
	const loaded = found['server.modelPath'] ?? null;
	if (model !== null && loaded !== null && model !== loaded)
		throw new Refusal(`the server has loaded ${loaded}, the configuration names ${model}`);
	const news = Object.entries(found).filter(
		([key, value]) => value !== null && !isKnown(manifest.identity[key]) && manifest.identity[key] !== value,
	);
	if (news.length === 0) return manifest;
	const learned = {...manifest, identity: {...manifest.identity, ...Object.fromEntries(news)}};
	writeManifest(files, path, learned);
	return learned;
}

export const serverIdentity = ({modelPath, version}: ServerIdentity): Identity => ({
	'server.modelPath': modelPath === null ? null : withoutSlash(modelPath),
	'server.version': version,
});
