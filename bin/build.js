// Builds the one bundled file: production React inside, ssh2 outside (it dies on __dirname when bundled into ESM).
import {chmodSync, rmSync} from 'node:fs';
import {build} from 'esbuild';
import {inkOutput} from './ink-output.js';

const BANNER = `#!/usr/bin/env node
import {createRequire as __createRequire} from 'node:module';
const require = __createRequire(import.meta.url);`;

// Chunks are named by their content: old ones would pile up.
rmSync('dist', {recursive: true, force: true});

await build({
	plugins: [inkOutput],
	entryPoints: {
		relight: 'bin/relight.ts',
		...(process.argv.includes('bench') && {bench: 'bin/bench.ts'}),
		...(process.argv.includes('screenshot') && {screenshot: 'bin/screenshot.ts'}),
	},
	outdir: 'dist',
	bundle: true,
	splitting: true,
	chunkNames: 'chunk-[hash]',
	format: 'esm',
	platform: 'node',
	target: 'node20',
	minify: true,
	external: ['ssh2', '@lydell/node-pty', '@xterm/headless'],
	define: {'process.env.NODE_ENV': '"production"', 'process.env["DEV"]': '"false"'},
	alias: {'react-devtools-core': './bin/no-devtools.js'},
	loader: {'.py': 'text', '.sh': 'text'},
	banner: {js: BANNER},
	logLevel: 'warning',
});
chmodSync('dist/relight.js', 0o755);
