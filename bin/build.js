// Builds the one bundled file: production React inside, ssh2 outside (it dies on __dirname when bundled into ESM).
import {chmodSync, rmSync} from 'node:fs';
import {build} from 'esbuild';
import {inkOutput} from './ink-output.js';

const BANNER = `#!/usr/bin/env node
import {createRequire as __createRequire} from 'node:module';
const require = __createRequire(import.meta.url);`;

// Chunks are named by their content: old ones would pile up.
rmSync('dist', {recursive: true, force: true});

const COMMON = {
	bundle: true,
	format: 'esm',
	platform: 'node',
	target: 'node20',
	minify: true,
	define: {'process.env.NODE_ENV': '"production"', 'process.env["DEV"]': '"false"'},
	loader: {'.py': 'text', '.sh': 'text'},
	banner: {js: BANNER},
	external: ['ssh2'],
	logLevel: 'warning',
};

await build({
	...COMMON,
	plugins: [inkOutput],
	entryPoints: {
		relight: 'bin/relight.ts',
		...(process.argv.includes('bench') && {bench: 'bin/bench.ts'}),
		...(process.argv.includes('screenshot') && {screenshot: 'bin/screenshot.ts'}),
	},
	outdir: 'dist',
	splitting: true,
	chunkNames: 'chunk-[hash]',
	external: ['ssh2', '@lydell/node-pty', '@xterm/headless'],
	alias: {'react-devtools-core': './bin/no-devtools.js'},
});
// What is sent to a GPU box: the extractor alone, in one file that needs nothing beside Node.
await build({...COMMON, entryPoints: {extractor: 'bin/extractor.ts'}, outdir: 'dist', outExtension: {'.js': '.mjs'}});
chmodSync('dist/relight.js', 0o755);
