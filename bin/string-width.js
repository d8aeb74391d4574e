import measured from 'string-width-measured';

const STYLE = /\u001b\[[0-9;]*m/g;
/** Letters, signs, box drawing and blocks: one cell each on every terminal. */
const ONE_CELL_EACH = /^[\u0020-\u007e\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2015\u2026\u2190-\u2193\u2500-\u259f]*$/;

/** What almost every row of the console is made of needs no segmenter; everything else is measured as before. */
export default function stringWidth(text, options) {
	if (typeof text !== 'string') return 0;
	const bare = text.includes('\u001b') ? text.replace(STYLE, '') : text;
	return ONE_CELL_EACH.test(bare) ? bare.length : measured(text, options);
}
