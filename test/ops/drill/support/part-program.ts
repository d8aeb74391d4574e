import {mkdirSync, mkdtempSync, rmSync} from 'node:fs';
import {join} from 'node:path';
import {build} from 'esbuild';

const BANNER = `import {createRequire as __createRequire} from 'node:module';
const require = __createRequire(import.meta.url);`;

/**
 * A program made of one source text, bundled as the product is. It lies below node_modules so that what stays outside the
 * bundle is found. `remove` takes it away again.
 */
export async function bundle(source: string): Promise<{file: string; remove(): void}> {
	mkdirSync('node_modules/.cache', {recursive: true});
	const directory = mkdtempSync(join(process.cwd(), 'node_modules/.cache/relight-test-'));
	const file = join(directory, 'relight.mjs');
	await build({
		stdin: {contents: source, resolveDir: process.cwd(), loader: 'ts', sourcefile: 'program.ts'},
		outfile: file,
		bundle: true,
		format: 'esm',
		platform: 'node',
		target: 'node20',
		external: ['ssh2'],
		loader: {'.py': 'text'},
		banner: {js: BANNER},
		logLevel: 'warning',
	});
	return {file, remove: () => rmSync(directory, {recursive: true, force: true})};
}

/** Stands for the relight bundle wherever a box starts a part of itself. */
export const PART_SOURCE = `
import {runPart} from './src/ops/drill/parts.ts';
process.exit(await runPart(process.argv.slice(3)));
`;
