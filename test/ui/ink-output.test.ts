import {execFileSync} from 'node:child_process';
import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {build} from 'esbuild';
import {afterAll, describe, expect, it} from 'vitest';
import {inkOutput} from '../../bin/ink-output.js';

const folder = mkdtempSync(join(tmpdir(), 'ink-output-'));
afterAll(() => rmSync(folder, {recursive: true}));

/** The console at five sizes, in colour and in ASCII, with and without a dialog, with CJK in it; each frame drawn twice. */
const SCREENS = `
import {renderToString} from 'ink';
import {Frame} from './src/ui/app.tsx';
import {ConsoleContext} from './src/ui/hooks/use-console.ts';
import {sampleFacts} from './test/ui/support/sample-facts.ts';
import {factsOf, sampleState} from './test/ui/support/sample-state.ts';
import {standIn} from './test/ui/support/stand-in.ts';
const wide = factsOf({...sampleFacts, 'command-lines': {lines: new Map([['812@8120', '日本語 \\u001b[31m serve'], ['9120@91200', 'e\\u0301clair']])}});
const frames = [];
for (const [columns, rows] of [[200, 60], [140, 45], [80, 24], [60, 15], [40, 8]]) {
	for (const theme of [{color: true, ascii: false}, {color: false, ascii: true}]) {
		for (const overlays of [[], [{type: 'help', scroll: 0}], [{type: 'alerts', index: 1}]]) {
			const tools = {...standIn(sampleState({facts: wide, view: {overlays}}), {columns, rows}), theme};
			for (const again of [0, 1]) frames.push(renderToString(<ConsoleContext value={tools}><Frame columns={columns} rows={rows} key={again} /></ConsoleContext>, {columns}));
		}
	}
}
console.log(JSON.stringify(frames));
`;

async function frames(name: string, plugins: (typeof inkOutput)[]): Promise<string[]> {
	const outfile = join(folder, `${name}.mjs`);
	await build({
		stdin: {contents: SCREENS, resolveDir: process.cwd(), loader: 'tsx'},
		outfile,
		bundle: true,
		loader: {'.py': 'text'},
		format: 'esm',
		platform: 'node',
		jsx: 'automatic',
		define: {'process.env.NODE_ENV': '"production"', 'process.env["DEV"]': '"false"'},
		alias: {'react-devtools-core': './bin/no-devtools.js'},
		banner: {js: "import {createRequire} from 'node:module'; const require = createRequire(import.meta.url);"},
		logLevel: 'silent',
		plugins,
	});
	const shown = execFileSync(process.execPath, [outfile], {encoding: 'utf8', maxBuffer: 64 << 20});
	return JSON.parse(shown) as string[];
}

/** What the terminal shows: each character with the looks that are on. Blanks show an inverse only. */
function seen(frame: string): string {
	const on = {bold: '', dim: '', inverse: '', color: ''};
	let out = '';
	for (const [, code, character] of frame.matchAll(/\x1b\[(\d+)m|([\s\S])/gu)) {
		if (character !== undefined) {
			const looks =
				character === ' ' || character === '\n' ? on.inverse : `${on.bold}${on.dim}${on.inverse}${on.color}`;
			out += `${character}${looks}`;
		} else if (code === '1') on.bold = 'B';
		else if (code === '2') on.dim = 'D';
		else if (code === '7') on.inverse = 'I';
		else if (code === '22') on.bold = on.dim = '';
		else if (code === '27') on.inverse = '';
		else on.color = code === '39' ? '' : `c${code}`;
	}
	return out;
}

describe('the quick way through Ink', () => {
	it('shows the same frames as Ink’s own way', async () => {
		const [own, quick] = await Promise.all([frames('own', []), frames('quick', [inkOutput])]);
		expect(own).toHaveLength(60);
		expect(quick.map(seen)).toEqual(own.map(seen));
	}, 60_000);
});
