import {type Offer, selectOffers} from '../../state/selectors/offers.ts';
import {selectProcesses} from '../../state/selectors/processes.ts';
import {type ConsoleState, type Overlay, SIGNALS} from '../../state/state.ts';
import {OPERATION_KEYS} from '../keymap/operation-keys.ts';
import {paletteEntries} from '../keymap/palette-entries.ts';
import {clean, fitText, wrap} from '../safe.ts';
import {invert, type Row, span} from '../theme.ts';
import type {Layer, Screen} from './layer.ts';

type Of<T extends Overlay['type']> = Extract<Overlay, {type: T}>;

const pick = (row: Row, selected: boolean): Row => (selected ? invert([span('>'), ...row]) : [span(' '), ...row]);

/** What can be done now, how hard it is to confirm, and why not. */
export function operationsLayer({index}: Of<'operations'>, state: ConsoleState, screen: Screen): Layer {
	const offers = selectOffers(state);
	const width = Math.max(30, Math.min(screen.width - 6, 104));
	const running = state.operation.phase === 'running' ? state.operation.plan.title : null;
	const chosen = offers[Math.min(index, offers.length - 1)];
	return {
		title: [
			span('operations', 'title'),
			span(`  on ${state.target.name}`, 'dim'),
			...(state.session.dryRun ? [span('  DRY-RUN', 'warn')] : []),
		],
		body: offers.map((offer, at) => pick(offerRow(offer), at === index)),
		foot: [
			[],
			...(chosen ? wholeWords(chosen, width) : []),
			[
				running
					? span(`0 aborts at the next safe point: ${running}`, 'warn')
					: span('a digit plans it at once; nothing runs before you confirm it', 'dim'),
			],
		],
		stands: {by: 'index', at: Math.min(index, Math.max(0, offers.length - 1))},
		width,
	};
}

function offerRow(offer: Offer): Row {
	const {operation, tier, refused} = offer;
	const open = refused === null;
	return [
		span(` ${OPERATION_KEYS[operation] ?? ' '} `, open ? 'title' : 'dim'),
		span(`${fitText(operation, 15)} `, open ? 'plain' : 'dim'),
		span(`tier ${tier}  `, 'dim'),
		span(wordsOf(offer), open ? 'plain' : 'dim'),
	];
}

const wordsOf = ({refused, commands, plan, title}: Offer): string =>
	refused === null ? `${commands} command${commands === 1 ? '' : 's'}: ${plan?.title ?? title}` : `no: ${refused}`;

/** Cells of an offer before its words. */
const OFFER_HEAD = 29;

/** The selected line once more where it was cut: a reason that cannot be read is none. */
function wholeWords(offer: Offer, width: number): readonly Row[] {
	const words = clean(wordsOf(offer));
	if (words.length <= width - OFFER_HEAD) return [];
	return [...wrap(words, width).map((line): Row => [span(line, 'accent')]), []];
}

const MEANINGS: Record<(typeof SIGNALS)[number], string> = {
	TERM: 'ask it to end',
	INT: 'as Ctrl-C in its terminal',
	HUP: 'hang up; many daemons read their configuration again',
	USR1: 'own meaning of the program',
	USR2: 'own meaning of the program',
	CONT: 'go on after STOP',
	STOP: 'halt where it stands; keeps its GPU memory',
	KILL: 'end at once, without a word; the last resort',
};

export function signalsLayer({index, processKey}: Of<'signals'>, state: ConsoleState): Layer {
	const process = selectProcesses(state).rows.find(row => row.key === processKey);
	const rows: Row[] = [
		[span('Cancel')],
		...SIGNALS.map((name): Row => [span(fitText(name, 6)), span(MEANINGS[name], 'dim')]),
	];
	const warning: Row[] = process?.owner.endsWith('.service')
		? [[span(`${process.owner} keeps it: stop the unit first (o 1), else it may come back`, 'warn')]]
		: [];
	return {
		title: [
			span('signal', 'title'),
			span(process ? `  pid ${process.pid} ${process.command}` : `  ${processKey}: not seen any more`, 'dim'),
		],
		body: rows.map((row, at) => pick(row, at === index)),
		foot: warning.length > 0 ? [[], ...warning] : [],
		stands: {by: 'index', at: index},
		width: 76,
	};
}

export function paletteLayer({text, index}: Of<'palette'>, state: ConsoleState, screen: Screen): Layer {
	const entries = paletteEntries(state, text);
	const width = Math.max(20, Math.min(screen.width - 6, 84));
	const at = Math.min(index, Math.max(0, entries.length - 1));
	const moment = {nowMs: state.nowMs, reach: {at: 0, last: 0, page: 1}};
	return {
		title: [span(': ', 'accent'), span(`${text}_`, 'title')],
		body:
			entries.length === 0
				? [[span('nothing matches', 'dim')]]
				: entries.map((entry, position) => {
						const meaning = entry.means(state, moment);
						const why = 'refused' in meaning ? `  (${meaning.refused})` : '';
						return pick(
							[span(fitText(entry.keys, 10), 'accent'), span(entry.says, why ? 'dim' : 'plain'), span(why, 'dim')],
							position === at,
						);
					}),
		foot: [],
		stands: {by: 'index', at},
		width,
	};
}
