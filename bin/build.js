// Builds the bundle: production React inside, ssh2 outside (it dies on __dirname when bundled into ESM). Split, so that what is
// not needed for the first frame is read after it.
import {chmodSync} from 'node:fs';
import {build} from 'esbuild';
import {COMMON} from './build-options.js';
import {inkOutput} from './ink-output.js';
import {clearDist, dropStale} from './standalone-files.js';

const BANNER = `#!/usr/bin/env node
import {createRequire as __createRequire} from 'node:module';
const require = __createRequire(import.meta.url);`;

clearDist();

const MODULES = {...COMMON, format: 'esm', banner: {js: BANNER}};

await build({
	...MODULES,
	plugins: [inkOutput],
	entryPoints: {
		relight: 'bin/relight.ts',
		// Makes chunks that hold nothing but what a thread needs: it is that much sooner at work.
		'verify-thread': 'src/ops/verify/pool.ts',
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
await build({...MODULES, entryPoints: {extractor: 'bin/extractor.ts'}, outdir: 'dist', outExtension: {'.js': '.mjs'}});
dropStale('dist/extractor.mjs');
chmodSync('dist/relight.js', 0o755);
