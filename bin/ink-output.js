// Ink 8.0.0 reads every line of the screen character by character in every frame. A frame of ours is lines that do not
// overlap, with looks written as Ink itself writes them, so that a screen line is its parts with blanks between them.
// Frames with anything else in them (a layer on top, a clip) go Ink's own way. Exact pin: see package.json.
import {readFileSync} from 'node:fs';
import {fileURLToPath} from 'node:url';

const FAST = `
const composed = (operations, width, height) => {
	const rows = new Map();
	for (const {type, x, y, text, transformers} of operations) {
		if (type !== 'write' || x < 0) return undefined;
		for (const [index, line] of text.split('\\n').entries()) {
			if (y + index < 0 || y + index >= height || line === '') continue;
			let shown = line;
			for (const transform of transformers) shown = transform(shown, index);
			const cells = stringWidth(shown);
			if (x + cells > width) return undefined;
			const row = rows.get(y + index);
			const part = {x, cells, shown};
			if (row) row.push(part);
			else rows.set(y + index, [part]);
		}
	}
	const lines = [];
	for (let y = 0; y < height; y++) {
		const parts = rows.get(y) ?? [];
		if (parts.length > 1) parts.sort((a, b) => a.x - b.x);
		let line = '';
		let end = 0;
		for (const {x, cells, shown} of parts) {
			if (x < end) return undefined;
			line += ' '.repeat(x - end) + shown;
			end = x + cells;
		}
		lines.push(line.trimEnd());
	}
	return {output: lines.join('\\n'), height};
};
`;

const CELLS = JSON.stringify(fileURLToPath(new URL('../src/ui/terminal/changed-cells.ts', import.meta.url)));

function edited(path, from, to) {
	const source = readFileSync(path, 'utf8');
	if (!source.includes(from)) throw new Error(`${path} is not the one that this was made for`);
	return source.replace(from, () => to);
}

export const inkOutput = {
	name: 'ink-output',
	setup(build) {
		build.onLoad({filter: /[\\/]ink[\\/]build[\\/]output\.js$/}, ({path}) => {
			const contents = edited(
				path,
				'    get() {\n',
				'    get() {\n        const fast = composed(this.operations, this.width, this.height);\n        if (fast) return fast;\n',
			);
			return {contents: `${contents}\n${FAST}`, loader: 'js'};
		});
		// Nothing in such a text has to be taken out; looks are only read past.
		build.onLoad({filter: /[\\/]ink[\\/]build[\\/]sanitize-ansi\.js$/}, ({path}) => ({
			contents: edited(
				path,
				'const sanitizeAnsi = (text) => {',
				`import {NOT_ONE_CELL} from ${CELLS};
const sanitizeAnsi = text =>
	NOT_ONE_CELL.test(text.replace(/\\n|\\u001B\\[[\\d;]*m/g, '')) ? sanitized(text) : text;
const sanitized = text => {`,
			),
			loader: 'js',
		}));
		// Of a line that changed, Ink writes all from the first difference on, and every look before it once more.
		build.onLoad({filter: /[\\/]ink[\\/]build[\\/]line-update\.js$/}, ({path}) => ({
			contents: edited(
				path,
				'export default function lineUpdate(',
				`import {changedCells} from ${CELLS};
export default (previous, next, columns) => changedCells(previous, next, columns) ?? lineUpdate(previous, next, columns);
function lineUpdate(`,
			),
			loader: 'js',
		}));
		// Lines that stay are stepped over: one step of many lines, not many steps.
		build.onLoad({filter: /[\\/]ink[\\/]build[\\/]log-update\.js$/}, ({path}) => ({
			contents: edited(
				path,
				"stream.write(buffer.join(''));",
				"stream.write(buffer.join('').replace(/(?:\\u001B\\[E){2,}/g, steps => `\\u001B[${steps.length / 3}E`));",
			),
			loader: 'js',
		}));
		// The layout engine comes as a data URL: fetching it loads the whole HTTP client of Node before the first paint.
		build.onLoad({filter: /[\\/]yoga-wasm-base64-esm\.js$/}, ({path}) => ({
			contents: `const fetch = undefined;\n${readFileSync(path, 'utf8')}`,
			loader: 'js',
		}));
		// A screen shows a dozen texts at a time, each as large as a pane; thousands of old ones are megabytes for nothing.
		build.onLoad({filter: /[\\/]ink[\\/]build[\\/](measure|wrap)-text\.js$/}, ({path}) => ({
			contents: edited(path, 'maxSize: 4096', 'maxSize: 32'),
			loader: 'js',
		}));
		// No need to look for graphemes here either.
		build.onLoad({filter: /[\\/]string-width[\\/]index\.js$/}, ({path}) => ({
			contents: edited(
				path,
				'export default function stringWidth(',
				`import {NOT_ONE_CELL} from ${CELLS};
export default function quickWidth(string, options) {
	if (options === undefined && typeof string === 'string') {
		const bare = string.includes('\\u001B') ? string.replace(/\\u001B\\[[\\d;]*m/g, '') : string;
		if (!NOT_ONE_CELL.test(bare)) return bare.length;
	}
	return stringWidth(string, options);
}
function stringWidth(`,
			),
			loader: 'js',
		}));
	},
};
