// Ink 8.0.0 reads every line of the screen character by character in every frame. A frame of ours is lines that do not
// overlap, with looks written as Ink itself writes them, so that a screen line is its parts with blanks between them.
// Frames with anything else in them (a layer on top, a clip, a line break) go Ink's own way. Exact pin: see package.json.
import {readFileSync} from 'node:fs';

const FAST = `
const seenWidths = new Map();
const cellsOf = text => {
	let cells = seenWidths.get(text);
	if (cells === undefined) {
		if (seenWidths.size >= 512) seenWidths.clear();
		cells = stringWidth(text);
		seenWidths.set(text, cells);
	}
	return cells;
};
const composed = (operations, width, height) => {
	const rows = new Map();
	for (const {type, x, y, text, transformers} of operations) {
		if (type !== 'write' || x < 0 || text.includes('\\n')) return undefined;
		if (y < 0 || y >= height) continue;
		let shown = text;
		for (const transform of transformers) shown = transform(shown, 0);
		const cells = cellsOf(shown);
		if (x + cells > width) return undefined;
		const row = rows.get(y);
		const part = {x, cells, shown};
		if (row) row.push(part);
		else rows.set(y, [part]);
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

/** A function of one text, by this name, that asks `fresh` only for texts it has not seen lately. */
const remembering = name => `
const seen = new Map();
const ${name} = text => {
	const known = seen.get(text);
	if (known !== undefined) return known;
	if (seen.size >= 512) seen.clear();
	const value = fresh(text);
	seen.set(text, value);
	return value;
};
`;

export const inkOutput = {
	name: 'ink-output',
	setup(build) {
		build.onLoad({filter: /[\\/]ink[\\/]build[\\/]output\.js$/}, ({path}) => {
			const source = readFileSync(path, 'utf8');
			const contents = source
				.replace('export default class Output', `${FAST}export default class Output`)
				.replace(
					'    get() {\n',
					'    get() {\n        const fast = composed(this.operations, this.width, this.height);\n        if (fast) return fast;\n',
				);
			if (!contents.includes('const fast =')) throw new Error(`${path} is not the Ink that this was made for`);
			return {contents, loader: 'js'};
		});
		// Of a frame's hundred texts most are those of the frame before.
		build.onLoad({filter: /[\\/](widest-line[\\/]index|ink[\\/]build[\\/]sanitize-ansi)\.js$/}, ({path}) => {
			const contents = readFileSync(path, 'utf8')
				.replace(
					'export default function widestLine(string) {',
					`${remembering('widestLine')}export default widestLine;\nfunction fresh(string) {`,
				)
				.replace('const sanitizeAnsi = (text) => {', `${remembering('sanitizeAnsi')}const fresh = text => {`);
			if (!contents.includes('fresh(text)')) throw new Error(`${path} is not the one that this was made for`);
			return {contents, loader: 'js'};
		});
		// The layout engine comes as a data URL: fetching it loads the whole HTTP client of Node before the first paint.
		build.onLoad({filter: /[\\/]yoga-wasm-base64-esm\.js$/}, ({path}) => ({
			contents: `const fetch = undefined;\n${readFileSync(path, 'utf8')}`,
			loader: 'js',
		}));
		// A screen shows some hundred texts at a time; thousands of old ones kept are megabytes for nothing.
		build.onLoad({filter: /[\\/]ink[\\/]build[\\/](measure|wrap)-text\.js$/}, ({path}) => ({
			contents: readFileSync(path, 'utf8').replace('maxSize: 4096', 'maxSize: 512'),
			loader: 'js',
		}));
		// Most of a screen is ASCII with lines and blocks, one cell each: no need to look for graphemes in it.
		build.onLoad({filter: /[\\/]string-width[\\/]index\.js$/}, ({path}) => ({
			contents: readFileSync(path, 'utf8').replace(
				'export default function stringWidth(',
				`export default function quickWidth(string, options) {
	if (options === undefined && typeof string === 'string') {
		const bare = string.includes('\\u001B') ? string.replace(/\\u001B\\[[\\d;]*m/g, '') : string;
		if (/^[\\u0020-\\u007E\\u2500-\\u259F\\u2026\\u00B7\\u2013]*$/.test(bare)) return bare.length;
	}
	return stringWidth(string, options);
}
function stringWidth(`,
			),
			loader: 'js',
		}));
	},
};
