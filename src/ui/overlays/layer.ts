import type {Place} from '../parts/region.tsx';
import {windowOn} from '../parts/table.ts';
import {fitRow, type Row, rowWidth, span, truncateRow} from '../theme.ts';

/** What lies on top of the panes, as data: rows that scroll or are chosen from, and rows that always show. */
export type Layer = {
	readonly title: Row;
	readonly body: readonly Row[];
	/** Never scrolled away: prompts, buttons, complaints. */
	readonly foot: readonly Row[];
	/** A text by its first line, a list by its selected item. */
	readonly stands: {readonly by: 'scroll' | 'index'; readonly at: number};
	readonly width: number;
	/** Rows of the body for one item of a list; the first `heading` ones belong to none. */
	readonly heading?: number;
	/** At the bottom instead of in the middle. */
	readonly low?: true;
};

export type Screen = {readonly width: number; readonly height: number};

/** In the middle, over the panes; header, alert line and footer stay in sight where the screen is tall enough. */
export function placeOf(layer: Layer, {width, height}: Screen): Place {
	const wide = Math.min(layer.width + 4, width);
	const spare = height >= 12 ? 3 : 0;
	const tall = Math.min(layer.body.length + layer.foot.length + 2, Math.max(3, height - spare));
	const top = layer.low ? height - 1 - tall : Math.max(spare > 0 ? 2 : 0, Math.floor((height - tall) / 2) - 1);
	return {
		left: Math.max(0, Math.floor((width - wide) / 2)),
		top: Math.max(0, Math.min(top, height - tall)),
		width: wide,
		height: tall,
	};
}

const bodyHeight = (layer: Layer, place: Place): number => Math.max(1, place.height - 2 - layer.foot.length);

/** Where it stands and how far it goes, for the keys that move. */
export function reachOf(layer: Layer, screen: Screen): {at: number; last: number; page: number} {
	const page = bodyHeight(layer, placeOf(layer, screen));
	const last =
		layer.stands.by === 'scroll'
			? Math.max(0, layer.body.length - page)
			: Math.max(0, layer.body.length - 1 - (layer.heading ?? 0));
	return {at: Math.min(layer.stands.at, last), last, page};
}

/** The framed rows: exactly as wide and as high as the place. */
export function layerRows(layer: Layer, place: Place): readonly Row[] {
	const inner = Math.max(1, place.width - 4);
	const room = bodyHeight(layer, place);
	const {from, to} = seen(layer, room);
	const lines = [...layer.body.slice(from, to)];
	while (lines.length < room) lines.push([]);
	const more =
		layer.body.length > room
			? `${from + 1}-${to} of ${layer.body.length}${to < layer.body.length ? ', PgDn for more' : ''}`
			: '';
	return [
		edge('┌', layer.title, '┐', place.width),
		...[...lines, ...layer.foot].map((row): Row => [span('│ ', 'accent'), ...fitRow(row, inner), span(' │', 'accent')]),
		edge('└', more ? [span(more, 'dim')] : [], '┘', place.width),
	];
}

function seen({body, stands, heading = 0}: Layer, room: number): {from: number; to: number} {
	if (stands.by === 'index') return windowOn(body.length, stands.at === 0 ? 0 : stands.at + heading, room);
	const from = Math.min(Math.max(0, stands.at), Math.max(0, body.length - room));
	return {from, to: Math.min(body.length, from + room)};
}

function edge(left: string, words: Row, right: string, width: number): Row {
	const shown = rowWidth(words) === 0 ? [] : [span(' '), ...truncateRow(words, Math.max(0, width - 8)), span(' ')];
	const rule = Math.max(0, width - 3 - rowWidth(shown));
	return [span(`${left}─`, 'accent'), ...shown, span(`${'─'.repeat(rule)}${right}`, 'accent')];
}
