// Mutations by the million against the file checker: `npm run fuzz -- [COUNT] [SEED]`.
import {spawnSync} from 'node:child_process';
import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {build} from 'esbuild';

const [count = '1000000', seed = '2'] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'relight-fuzz-'));
const program = join(folder, 'fuzz.mjs');
const run = `
import {fuzz} from './test/ops/verify/support/fuzz.ts';
const startedAt = performance.now();
const {verdicts, unseen, slowestMs, runs} = fuzz(${Number(count)}, ${Number(seed)}, 'test/fixtures/pt');
for (const [verdict, times] of Object.entries(verdicts).sort()) console.log(verdict.padEnd(32), times);
const megabytes = process.resourceUsage().maxRSS / 1024;
console.log(runs + ' mutations in ' + ((performance.now() - startedAt) / 1000).toFixed(0) + ' s, slowest ' + slowestMs.toFixed(0) + ' ms, at most ' + megabytes.toFixed(0) + ' MB');
for (const name of unseen) console.log('unseen: ' + name);
process.exit(unseen.length > 0 || megabytes > 100 || slowestMs > 2000 ? 1 : 0);
`;
try {
	await build({
		stdin: {contents: run, resolveDir: process.cwd(), loader: 'ts'},
		bundle: true,
		format: 'esm',
		platform: 'node',
		outfile: program,
		logLevel: 'warning',
	});
	process.exitCode =
		spawnSync(process.execPath, ['--max-semi-space-size=1', '--max-old-space-size=32', program], {stdio: 'inherit'})
			.status ?? 1;
} finally {
	rmSync(folder, {recursive: true, force: true});
}
