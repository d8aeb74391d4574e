import {createHash} from 'node:crypto';
import {existsSync, readFileSync} from 'node:fs';
import {PATCH_MARKER} from '../build-host.ts';
import type {PartBox} from './part-box.ts';

/** The look of the hook (look.py) on a machine without a Python: the same answer, from what is known of a box. */
export async function runByLookStandIn(
	{paths, sglang}: PartBox,
	[dumps = '', , model = '', directory = '']: readonly string[],
): Promise<number> {
	const package_ = `${paths.tree}/python/sglang`;
	const importable = (process.env.PYTHONPATH ?? '')
		.split(':')
		.filter(Boolean)
		.map(each => `${each}/relight_hs.py`)
		.find(existsSync);
	const config = json(`${model}/config.json`) as {
		architectures?: string[];
		text_config?: Record<string, number>;
	} | null;
	const answer = {
		python: '3.11.2',
		sglang: {
			directory: package_,
			version: sglang,
			source: source(paths.patched),
			bytecode: null,
			hooks: existsSync(`${package_}/srt/model_executor/hook_manager.py`),
		},
		tree: source(paths.patched),
		hook: {
			importable: importable ? source(importable) : null,
			placed: directory === '' ? null : source(`${directory}/relight_hs.py`),
		},
		model: config && {
			architecture: config.architectures?.[0] ?? null,
			layers: config.text_config?.num_hidden_layers ?? null,
			hiddenSize: config.text_config?.hidden_size ?? null,
		},
		status: json(`${dumps}/relight_hs.status.json`),
	};
	process.stdout.write(`relight-hook-look ${JSON.stringify(answer)}\n`);
	return 0;
}

function source(path: string) {
	if (!existsSync(path)) return null;
	const content = readFileSync(path);
	return {path, sha256: createHash('sha256').update(content).digest('hex'), marked: content.includes(PATCH_MARKER)};
}

const json = (path: string): unknown => (existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : null);
