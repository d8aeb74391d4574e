import stringWidth from 'string-width';

/**
 * Text from a host is hostile. `clean` leaves only characters that take the cells they are measured to take; what was
 * there stays visible: control characters as `^[`, C1, bidi and zero-width marks as `<U+202E>`, a line break as `\n`.
 */
export function clean(text: string): string {
	const cut = text.length > LONGEST ? `${text.slice(0, LONGEST)}~` : text;
	if (ONE_CELL_EACH.test(cut)) return cut;
	return cut.replace(JOINED, '').replace(HOSTILE, visible).replace(STACKED_MARKS, '$1');
}

/** A pasted or logged monster costs its first cells only. */
const LONGEST = 4096;
/** Printable ASCII and our own lines and blocks: most of the screen is cleaned and measured by this alone. */
const ONE_CELL_EACH = /^[\x20-\x7e\u2500-\u259f…·–]*$/;
/** Variation selectors and skin tones: terminals disagree on their width and nothing is lost without them. */
const JOINED = /[\u{fe00}-\u{fe0f}\u{1f3fb}-\u{1f3ff}\u{e0100}-\u{e01ef}]/gu;
const HOSTILE =
	// biome-ignore lint/suspicious/noMisleadingCharacterClass: single marks are meant
	/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Cn}\p{Co}\u{115f}\u{1160}\u{3164}\u{ffa0}\u{34f}\u{180b}-\u{180f}\u{1f1e6}-\u{1f1ff}]/gu;
const STACKED_MARKS = /(\p{M}{2})\p{M}+/gu;

function visible(character: string): string {
	const code = character.codePointAt(0) ?? 0;
	if (character === '\t') return ' ';
	if (character === '\n') return '\\n';
	if (character === '\r') return '\\r';
	if (code < 0x20) return `^${String.fromCharCode(code + 0x40)}`;
	if (code === 0x7f) return '^?';
	if (code >= 0x1f1e6 && code <= 0x1f1ff) return String.fromCharCode(code - 0x1f1e6 + 0x41);
	if (code >= 0xd800 && code <= 0xdfff) return '?';
	return `<U+${code.toString(16).toUpperCase().padStart(4, '0')}>`;
}

/** Terminal cells of clean text. */
export const width = (text: string): number => (ONE_CELL_EACH.test(text) ? text.length : stringWidth(text));

/** The longest start of `text` in at most `cells` cells; a cut is marked by `…` in the last one. */
export function truncate(text: string, cells: number): string {
	if (cells <= 0) return '';
	if (width(text) <= cells) return text;
	return `${start(text, cells - 1)}…`;
}

/** A path says most in its last part: the longest end of `text` in at most `cells` cells, a cut marked by `…`. */
export function keepEnd(text: string, cells: number): string {
	if (width(text) <= cells) return text;
	if (cells <= 1) return '…'.slice(0, Math.max(0, cells));
	let taken = '';
	for (const {segment} of [...GRAPHEMES.segment(text)].reverse()) {
		if (width(segment + taken) > cells - 1) break;
		taken = segment + taken;
	}
	return `…${taken}`;
}

/** Exactly `cells` cells: padded, or cut with a mark. */
export function fitText(text: string, cells: number, align: 'left' | 'right' = 'left'): string {
	const shown = truncate(text, cells);
	const room = cells - width(shown);
	if (room <= 0) return shown;
	return align === 'left' ? shown + ' '.repeat(room) : ' '.repeat(room) + shown;
}

/** Every cell of the text in lines of at most `cells` cells, for commands that must be read whole. */
export function wrap(text: string, cells: number): readonly string[] {
	if (cells < 2) return [truncate(text, cells)];
	const lines: string[] = [];
	let rest = text;
	while (width(rest) > cells) {
		const whole = start(rest, cells);
		const space = whole.lastIndexOf(' ');
		const taken = space > cells / 2 ? whole.slice(0, space + 1) : whole;
		lines.push(taken.trimEnd());
		rest = rest.slice(taken.length);
	}
	lines.push(rest);
	return lines;
}

/** The longest start in at most `cells` cells, unmarked. */
export function start(text: string, cells: number): string {
	if (ONE_CELL_EACH.test(text)) return text.slice(0, cells);
	let used = 0;
	let taken = '';
	for (const {segment} of GRAPHEMES.segment(text)) {
		used += stringWidth(segment);
		if (used > cells) break;
		taken += segment;
	}
	return taken;
}

const GRAPHEMES = new Intl.Segmenter('en', {granularity: 'grapheme'});
