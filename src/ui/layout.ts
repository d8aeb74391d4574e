import type {PaneId} from '../state/state.ts';

/**
 * Where everything is, as a pure function. A pane's box starts with its title line (in `tabs` and `single` the tab line
 * is the title of the focused pane). Nothing is ever "too small": below 60x15 a few words remain, below that one line.
 */
export type Layout = {
	readonly mode: 'wide' | 'normal' | 'tabs' | 'single' | 'text' | 'line';
	/** Cells that may be drawn: one column and one row less than the terminal has. */
	readonly width: number;
	readonly height: number;
	readonly boxes: readonly Box[];
	/** Vertical lines between panes, top to bottom. */
	readonly seams: readonly Seam[];
};

export type BoxId = PaneId | 'header' | 'alert' | 'tabs' | 'summary' | 'footer' | 'why' | 'status';
export type Box = {
	readonly id: BoxId;
	readonly left: number;
	readonly top: number;
	readonly width: number;
	readonly height: number;
};
export type Seam = {readonly left: number; readonly top: number; readonly glyphs: readonly string[]};

export type LayoutView = {readonly focus: PaneId; readonly zoomed: boolean; readonly gpus: number};

export function layout(columns: number, rows: number, view: LayoutView): Layout {
	const width = Math.max(1, columns - 1);
	const height = Math.max(1, rows - 1);
	const cards = Math.min(Math.max(view.gpus, 1), Math.max(8, Math.floor(height / 3)));
	if (height < 5)
		return {mode: 'line', width, height, boxes: [{id: 'status', left: 0, top: 0, width, height: 1}], seams: []};
	if (width < 59 || height < 14) {
		return {mode: 'text', width, height, boxes: [{id: 'status', left: 0, top: 0, width, height}], seams: []};
	}
	if (view.zoomed || width < 75 || height < 18) return single(width, height, view.focus);
	if (width >= 179 && height >= 48) return wide(width, height, cards);
	if (width >= 119 && height >= 30) return normal(width, height, cards);
	return tabs(width, height, view.focus, cards);
}

function frame(width: number, height: number): Box[] {
	return [
		{id: 'header', left: 0, top: 0, width, height: 1},
		{id: 'alert', left: 0, top: 1, width, height: 1},
		{id: 'footer', left: 0, top: height - 1, width, height: 1},
	];
}

function single(width: number, height: number, focus: PaneId): Layout {
	const boxes: Box[] = [
		...frame(width, height),
		{id: 'tabs', left: 0, top: 2, width, height: 1},
		{id: focus, left: 0, top: 2, width, height: height - 3},
	];
	return {mode: 'single', width, height, boxes, seams: []};
}

/** Title, heading, one line per card, sums. */
const gpuHeight = (cards: number): number => cards + 3;

function normal(width: number, height: number, cards: number): Layout {
	const gpu = gpuHeight(cards);
	const top = 2 + gpu;
	const room = height - 1 - top;
	const middle = Math.max(13, Math.round(room * 0.56));
	const mounts = Math.min(8, Math.max(5, middle - 10));
	const left = Math.round(width * 0.62);
	const right = width - left - 1;
	const boxes: Box[] = [
		...frame(width, height),
		{id: 'gpu', left: 0, top: 2, width, height: gpu},
		{id: 'processes', left: 0, top, width: left, height: middle},
		{id: 'mounts', left: left + 1, top, width: right, height: mounts},
		{id: 'extraction', left: left + 1, top: top + mounts, width: right, height: middle - mounts},
		{id: 'log', left: 0, top: top + middle, width: left, height: room - middle},
		{id: 'operations', left: left + 1, top: top + middle, width: right, height: room - middle},
	];
	return {mode: 'normal', width, height, boxes, seams: [seam(left, top, room, boxes)]};
}

function wide(width: number, height: number, cards: number): Layout {
	const gpu = gpuHeight(cards);
	const top = 2 + gpu;
	const room = height - 1 - top;
	const first = Math.round(room * 0.38);
	const second = Math.min(13, Math.round(room * 0.3));
	const third = room - first - second;
	const left = Math.round(width * 0.6);
	const right = width - left - 1;
	const row = (leftId: BoxId, rightId: BoxId, at: number, tall: number): Box[] => [
		{id: leftId, left: 0, top: at, width: left, height: tall},
		{id: rightId, left: left + 1, top: at, width: right, height: tall},
	];
	const boxes: Box[] = [
		...frame(width, height),
		{id: 'gpu', left: 0, top: 2, width, height: gpu},
		...row('processes', 'why', top, first),
		...row('mounts', 'extraction', top + first, second),
		...row('log', 'operations', top + first + second, third),
	];
	return {mode: 'wide', width, height, boxes, seams: [seam(left, top, room, boxes)]};
}

/** One column of glyphs that joins the title lines on both sides. */
function seam(left: number, top: number, height: number, boxes: readonly Box[]): Seam {
	const glyphs = Array.from({length: height}, (_, index) => {
		const y = top + index;
		const onLeft = boxes.some(box => box.top === y && box.left + box.width === left);
		const onRight = boxes.some(box => box.top === y && box.left === left + 1);
		if (index === 0) return '┬';
		if (onLeft && onRight) return '┼';
		if (onRight) return '├';
		return onLeft ? '┤' : '│';
	});
	return {left, top, glyphs};
}

const ORDER: readonly PaneId[] = ['gpu', 'extraction', 'operations', 'processes', 'mounts', 'log'];
const IDEAL: Record<PaneId, number> = {gpu: 0, processes: 13, mounts: 8, extraction: 9, log: 11, operations: 11};
const LEAST: Record<PaneId, number> = {gpu: 4, processes: 7, mounts: 6, extraction: 6, log: 6, operations: 6};

/** Focused pane on top, then as many others as fit whole, the rest one line each. */
function tabs(width: number, height: number, focus: PaneId, cards: number): Layout {
	const ideal = (pane: PaneId): number => (pane === 'gpu' ? gpuHeight(cards) : IDEAL[pane]);
	const least = (pane: PaneId): number => (pane === 'gpu' ? gpuHeight(cards) : LEAST[pane]);
	const others = ORDER.filter(pane => pane !== focus);
	const room = height - 3;
	const own = Math.min(ideal(focus), room - 1 - others.length);
	let spare = room - own - 1 - others.length;
	const stacked: {pane: PaneId; tall: number}[] = [];
	for (const pane of others) {
		if (spare < least(pane) - 1) continue;
		const tall = Math.min(ideal(pane), spare + 1);
		stacked.push({pane, tall});
		spare -= tall - 1;
	}
	const folded = others.length - stacked.length;
	const summary = folded === 0 ? 0 : 1 + folded + Math.min(spare, stacked.length === 0 ? 4 : 0);
	const extra = room - own - summary - stacked.reduce((sum, {tall}) => sum + tall, 0);
	const last = stacked.at(-1);
	if (last && focus === 'gpu') last.tall += extra;
	const boxes: Box[] = [...frame(width, height), {id: 'tabs', left: 0, top: 2, width, height: 1}];
	let top = 2;
	const place = (id: BoxId, tall: number): void => {
		if (tall > 0) boxes.push({id, left: 0, top, width, height: tall});
		top += tall;
	};
	place(focus, own + (last && focus === 'gpu' ? 0 : extra));
	for (const {pane, tall} of stacked) place(pane, tall);
	place('summary', summary);
	return {mode: 'tabs', width, height, boxes, seams: []};
}
