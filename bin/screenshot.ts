import {writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {spawn} from '@lydell/node-pty';
import xterm from '@xterm/headless';

/**
 * Draws the README's picture from a real run: the drill in a pseudo-terminal, its cells read back and written as SVG.
 * `node dist/screenshot.js FILE [COLUMNSxROWS] [KEYS…]`; a KEYS word `wait:TEXT` waits until the text is on the screen.
 */
const [file = 'console.svg', size = '140x45', ...script] = process.argv.slice(2);
const [columns = 140, rows = 45] = size.split('x').map(Number);
const terminal = new xterm.Terminal({cols: columns, rows, allowProposedApi: true});
const pty = spawn(process.execPath, [join(import.meta.dirname, 'relight.js'), 'drill'], {
	cols: columns,
	rows,
	cwd: '/',
	env: {PATH: process.env.PATH ?? '', HOME: '/nonexistent', TERM: 'xterm-256color', LANG: 'C.UTF-8'},
});
pty.onData(data => terminal.write(data));
const sleep = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms));

const line = (row: number) => terminal.buffer.active.getLine(terminal.buffer.active.viewportY + row);
const text = () => Array.from({length: rows}, (_, row) => line(row)?.translateToString(true) ?? '').join('\n');
const see = async (wanted: string) => {
	for (let turn = 0; turn < 600 && !text().includes(wanted); turn++) await sleep(100);
	if (!text().includes(wanted)) throw new Error(`never saw ${wanted} in\n${text()}`);
};

await see('comes back at boot');
await sleep(12_000);
for (const word of script) {
	if (word.startsWith('wait:')) await see(word.slice(5));
	else if (word.startsWith('sleep:')) await sleep(Number(word.slice(6)));
	else {
		for (const key of word === 'Enter' ? ['\r'] : word) {
			pty.write(key);
			await sleep(250);
		}
	}
}
await sleep(300);
writeFileSync(file, svg());
pty.kill('SIGTERM');
await sleep(1_500);
process.exit(0);

function svg(): string {
	const cell = {width: 8.4, height: 17};
	const palette = [
		'#1d2021',
		'#f4685c',
		'#8fc866',
		'#e7b84a',
		'#6ea8e0',
		'#c88bd6',
		'#62c5bd',
		'#d5c9ac',
		'#7c7367',
		'#ff7b70',
		'#a6dd7c',
		'#ffd06a',
		'#8bc0f2',
		'#dba6e6',
		'#84dbd4',
		'#f6ecd2',
	];
	const ground = palette[0] as string;
	const ink = palette[7] as string;
	const parts: string[] = [];
	for (let row = 0; row < rows; row++) {
		const cells = line(row);
		if (!cells) continue;
		let at = 0;
		while (at < columns) {
			const first = cells.getCell(at);
			if (!first) break;
			const style = styleOf(first);
			let run = '';
			let end = at;
			for (; end < columns; end++) {
				const next = cells.getCell(end);
				if (!next || styleOf(next) !== style) break;
				run += next.getChars() || (next.getWidth() === 0 ? '' : ' ');
			}
			const [fore, back, bold, dim] = style.split(' ');
			const x = (at * cell.width).toFixed(1);
			const y = row * cell.height;
			if (back !== ground)
				parts.push(
					`<rect x="${x}" y="${y}" width="${((end - at) * cell.width).toFixed(1)}" height="${cell.height}" fill="${back}"/>`,
				);
			const weight = bold === '1' ? ' font-weight="bold"' : '';
			const faint = dim === '1' ? ' opacity="0.6"' : '';
			// Word by word: renderers differ in what they do with blanks inside a stretched text.
			for (const word of run.matchAll(/\S+/g)) {
				const from = ((at + word.index) * cell.width).toFixed(1);
				const length = ([...word[0]].length * cell.width).toFixed(1);
				parts.push(
					`<text x="${from}" y="${y + 13}" fill="${fore}"${weight}${faint} textLength="${length}">${markup(word[0])}</text>`,
				);
			}
			at = end;
		}
	}
	const width = Math.ceil(columns * cell.width) + 16;
	const height = rows * cell.height + 16;
	return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-8 -8 ${width} ${height}" width="${width}" height="${height}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13.5">\n<rect x="-8" y="-8" width="${width}" height="${height}" rx="6" fill="${ground}"/>\n${parts.join('\n')}\n</svg>\n`;

	function styleOf(one: xterm.IBufferCell): string {
		let fore = one.isFgPalette() ? (palette[one.getFgColor()] ?? ink) : ink;
		let back = one.isBgPalette() ? (palette[one.getBgColor()] ?? ground) : ground;
		if (one.isInverse()) [fore, back] = [back, fore];
		return `${fore} ${back} ${one.isBold() ? 1 : 0} ${one.isDim() ? 1 : 0}`;
	}
}

function markup(text: string): string {
	return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
