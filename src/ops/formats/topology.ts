import {ParseError} from '../outcome.ts';

/** How cards reach one another, nearest first: NVLink, one switch, several, a host bridge, within a node, across nodes. */
export const LINKS = ['NV', 'PIX', 'PXB', 'PHB', 'NODE', 'SYS'] as const;
export type Link = (typeof LINKS)[number];

/** One pair of cards by their places in the matrix, lower first. `word` as the tool has it: `NV18`, `SYS`. */
export type CardLink = {readonly one: number; readonly other: number; readonly word: string};

/** Every pair of cards; none with a single card. */
export type Topology = {readonly cards: number; readonly links: readonly CardLink[]};

/** The tool underlines its header. */
const UNDERLINE = /\u001b\[[0-9;]*m/g;

/**
 * The matrix of `nvidia-smi topo -m`. Columns that are no card (network adapters, affinities) and the legend are left out.
 * ParseError without a header, or where a card's row is cut short. Source: driver 470 to 580; fixtures/nvidia-smi/topo-*.
 */
export function parseTopology(text: string): Topology {
	const lines = text.replaceAll(UNDERLINE, '').split('\n');
	const header = lines.find(line => /^\s+GPU\d+(\s|$)/.test(line));
	if (header === undefined) throw new ParseError('nvidia-smi topo', text.trim().split('\n')[0] ?? '');
	const names = header.split('\t').map(each => each.trim());
	const places = names.flatMap((name, at) => (/^GPU\d+$/.test(name) ? [{card: Number(name.slice(3)), at}] : []));
	const rows = new Map(
		lines.flatMap(line => {
			const cells = line.split('\t').map(each => each.trim());
			return /^GPU\d+$/.test(cells[0] ?? '') ? [[Number(cells[0]?.slice(3)), cells] as const] : [];
		}),
	);
	const links = places.flatMap(({card: one}) =>
		places
			.filter(({card}) => card > one)
			.map(({card: other, at}) => {
				const word = rows.get(one)?.[at] ?? '';
				if (word === '') throw new ParseError('nvidia-smi topo', rows.get(one)?.join(' ') ?? `no row of GPU${one}`);
				return {one, other, word};
			}),
	);
	return {cards: places.length, links};
}

/** How far apart, as a place in LINKS; a word that is none of them counts as the farthest. */
export function distanceOf(word: string): number {
	const at = LINKS.findIndex(link => (link === 'NV' ? /^NV\d+$/.test(word) : word === link));
	return at < 0 ? LINKS.length : at;
}
