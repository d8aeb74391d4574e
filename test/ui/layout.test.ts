import {describe, expect, it} from 'vitest';
import {PANES} from '../../src/state/state.ts';
import {type Box, type BoxId, type LayoutView, layout} from '../../src/ui/layout.ts';

const LETTERS: Record<BoxId, string> = {
	header: 'H',
	alert: 'A',
	footer: 'F',
	tabs: 'T',
	summary: 's',
	why: 'w',
	status: 'S',
	gpu: 'g',
	processes: 'p',
	mounts: 'm',
	extraction: 'e',
	log: 'l',
	operations: 'o',
};

const VIEW: LayoutView = {focus: 'gpu', zoomed: false, gpus: 8};

/** One character for ten columns and one row; tabs over their pane. */
function drawing(columns: number, rows: number, view: LayoutView = VIEW): string[] {
	const placed = layout(columns, rows, view);
	const at = (x: number, y: number): string => {
		const over = placed.boxes.filter(box => inside(box, x, y));
		const seam = placed.seams.find(one => one.left === x && y >= one.top && y < one.top + one.glyphs.length);
		const box = over.find(one => one.id === 'tabs') ?? over[0];
		return seam ? '|' : box ? LETTERS[box.id] : ' ';
	};
	return Array.from({length: placed.height}, (_, y) =>
		Array.from({length: Math.ceil(placed.width / 10)}, (_, x) => at(Math.min(x * 10, placed.width - 1), y)).join(''),
	);
}

const inside = (box: Box, x: number, y: number): boolean =>
	x >= box.left && x < box.left + box.width && y >= box.top && y < box.top + box.height;

/** Equal lines in a row as one with their number. */
function folded(lines: readonly string[]): string[] {
	const out: {line: string; times: number}[] = [];
	for (const line of lines) {
		const last = out.at(-1);
		if (last?.line === line) last.times++;
		else out.push({line, times: 1});
	}
	return out.map(({line, times}) => `${line} x${times}`);
}

describe('layout', () => {
	it('140x45: cards over two columns', () => {
		expect(folded(drawing(140, 45))).toEqual([
			'HHHHHHHHHHHHHH x1',
			'AAAAAAAAAAAAAA x1',
			'gggggggggggggg x11',
			'pppppppppmmmmm x7',
			'pppppppppeeeee x10',
			'lllllllllooooo x13',
			'FFFFFFFFFFFFFF x1',
		]);
	});

	it('200x60: the cause chain beside the processes', () => {
		expect(folded(drawing(200, 60))).toEqual([
			'HHHHHHHHHHHHHHHHHHHH x1',
			'AAAAAAAAAAAAAAAAAAAA x1',
			'gggggggggggggggggggg x11',
			'ppppppppppppwwwwwwww x17',
			'mmmmmmmmmmmmeeeeeeee x13',
			'lllllllllllloooooooo x15',
			'FFFFFFFFFFFFFFFFFFFF x1',
		]);
	});

	it('80x24: the focused pane, and one line or more for each other', () => {
		expect(folded(drawing(80, 24))).toEqual([
			'HHHHHHHH x1',
			'AAAAAAAA x1',
			'TTTTTTTT x1',
			'gggggggg x10',
			'ssssssss x9',
			'FFFFFFFF x1',
		]);
		expect(folded(drawing(80, 24, {...VIEW, focus: 'log'}))).toEqual([
			'HHHHHHHH x1',
			'AAAAAAAA x1',
			'TTTTTTTT x1',
			'llllllll x10',
			'ssssssss x9',
			'FFFFFFFF x1',
		]);
	});

	it('80x45: as many panes as fit whole', () => {
		expect(folded(drawing(80, 45))).toEqual([
			'HHHHHHHH x1',
			'AAAAAAAA x1',
			'TTTTTTTT x1',
			'gggggggg x10',
			'eeeeeeee x9',
			'oooooooo x11',
			'pppppppp x7',
			'ssssssss x3',
			'FFFFFFFF x1',
		]);
	});

	it('60x15 and zoomed: one pane under the tabs', () => {
		expect(folded(drawing(60, 15))).toEqual(['HHHHHH x1', 'AAAAAA x1', 'TTTTTT x1', 'gggggg x10', 'FFFFFF x1']);
		expect(folded(drawing(140, 45, {...VIEW, focus: 'mounts', zoomed: true}))).toEqual([
			'HHHHHHHHHHHHHH x1',
			'AAAAAAAAAAAAAA x1',
			'TTTTTTTTTTTTTT x1',
			'mmmmmmmmmmmmmm x40',
			'FFFFFFFFFFFFFF x1',
		]);
	});

	it('40x8 and less: words, then one line', () => {
		expect(layout(40, 8, VIEW)).toMatchObject({mode: 'text', boxes: [{id: 'status', width: 39, height: 7}]});
		expect(layout(40, 4, VIEW)).toMatchObject({mode: 'line', boxes: [{id: 'status', width: 39, height: 1}]});
		expect(layout(1, 1, VIEW)).toMatchObject({mode: 'line', width: 1, height: 1});
	});

	it('never draws outside one row and one column less than there are, and never twice on a cell', () => {
		const wrong: string[] = [];
		for (const gpus of [0, 1, 4, 8, 16, 64]) {
			for (const focus of PANES) {
				for (const zoomed of [false, true]) {
					for (let columns = 2; columns < 240; columns += 13) {
						for (let rows = 2; rows < 90; rows += 3) {
							const placed = layout(columns, rows, {focus, zoomed, gpus});
							const boxes = placed.boxes.filter(box => box.id !== 'tabs');
							const outside = placed.boxes.some(
								box =>
									box.height < 1 ||
									box.width < 1 ||
									box.left + box.width > columns - 1 ||
									box.top + box.height > rows - 1,
							);
							const lines = boxes.flatMap(box =>
								Array.from({length: box.height}, (_, y) => `${box.left} ${box.top + y}`),
							);
							if (outside || new Set(lines).size < lines.length)
								wrong.push(`${columns}x${rows} ${focus} ${gpus} cards${zoomed ? ' zoomed' : ''}`);
						}
					}
				}
			}
		}
		expect(wrong).toEqual([]);
	});

	it('joins the title lines of both sides in the seam', () => {
		expect(layout(140, 45, VIEW).seams[0]?.glyphs.join('')).toBe('┬││││││├│││││││││┼││││││││││││');
	});
});
