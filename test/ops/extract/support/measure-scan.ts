import {Dataset} from '../../../../src/ops/extract/dataset.ts';

/** Reads a dataset as a run does, and prints what it cost: `PATH MAX_TOKENS`. */
const [path = '', maxTokens = '8192'] = process.argv.slice(2);
const startedAt = performance.now();
const dataset = await Dataset.scan(path, {maxTokens: Number(maxTokens), overlength: 'truncate'});
const again: number[] = [];
const wanted = [0, Math.floor(dataset.records / 2), dataset.records - 1];
for await (const {inputIds} of dataset.samples(wanted)) again.push(inputIds.length);
const megabytes = process.resourceUsage().maxRSS / 1024;
console.log(
	JSON.stringify({
		records: dataset.records,
		sha256: dataset.sha256,
		order: dataset.order,
		again,
		megabytes,
		ms: performance.now() - startedAt,
	}),
);
