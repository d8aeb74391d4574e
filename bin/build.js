// Builds the one bundled file: production React inside, ssh2 outside (it dies on __dirname when bundled into ESM).
import {chmodSync, rmSync} from 'node:fs';
import {readFile} from 'node:fs/promises';
import {join} from 'node:path';
import {build} from 'esbuild';

const BANNER = `#!/usr/bin/env node
import {createRequire as __createRequire} from 'node:module';
const require = __createRequire(import.meta.url);`;

// Chunks are named by their content: old ones would pile up.
rmSync('dist', {recursive: true, force: true});

/**
 * Ink makes its caches of parsed lines anew for every frame, so that a frame costs the whole screen however little of it
 * changed. Kept across frames, and dropped before they grow, they cut the cost of a frame by almost half. The build fails
 * when the text is not there any more.
 */
const keepInkCaches = {
	name: 'keep-ink-caches',
	setup({onLoad}) {
		onLoad({filter: /ink\/build\/output\.js$/}, async ({path}) => {
			let text = await readFile(path, 'utf8');
			const exchange = (before, after) => {
				const parts = text.split(before);
				if (parts.length !== 2) throw new Error(`${path}: no longer as the build expects; see keepInkCaches`);
				text = parts.join(after);
			};
			exchange('caches = new OutputCaches();', 'caches = keptCaches();');
			exchange('const characterLines = [[]];', 'let lines = keptLines(text, () => { const characterLines = [[]];');
			exchange(
				'let lines = characterLines.map(line => styledCharsToString(line));',
				'return characterLines.map(line => styledCharsToString(line)); });',
			);
			return {contents: `${text}\n${KEPT_CACHES}`, loader: 'js'};
		});
	},
};

const KEPT_CACHES = `let kept = null;
const lines = new Map();
function keptCaches() {
	if (!kept || kept.styledChars.size > 2000 || kept.widths.size > 8000 || kept.blockWidths.size > 2000) kept = new OutputCaches();
	return kept;
}
function keptLines(text, make) {
	let found = lines.get(text);
	if (!found) {
		if (lines.size > 2000) lines.clear();
		found = make();
		lines.set(text, found);
	}
	return found;
}`;

/** Everything that measures text in the bundle goes through the short cut in string-width.js. */
const measureQuickly = {
	name: 'measure-quickly',
	setup({onResolve, resolve}) {
		onResolve({filter: /^string-width(-measured)?$/}, ({path, importer, resolveDir, pluginData}) => {
			if (pluginData === 'real') return;
			if (path === 'string-width') return {path: join(import.meta.dirname, 'string-width.js')};
			return resolve('string-width', {kind: 'import-statement', importer, resolveDir, pluginData: 'real'});
		});
	},
};

await build({
	plugins: [keepInkCaches, measureQuickly],
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
