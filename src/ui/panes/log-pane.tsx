import {type LogPaneModel, selectLog} from '../../state/selectors/log.ts';
import {duration} from '../format.ts';
import {useConsole} from '../hooks/use-console.ts';
import {Region} from '../parts/region.tsx';
import {emptyBody, faceRow, paneTitle} from '../parts/title.ts';
import {clean, wrap} from '../safe.ts';
import {type Row, type Span, span} from '../theme.ts';
import {frameOf, type PaneFrame, type PaneProps, paneRows} from './pane.ts';

export function LogPane(props: PaneProps) {
	return <Region place={props.place} rows={logPaneRows(useConsole(selectLog), frameOf(props))} />;
}

export function logPaneRows(model: LogPaneModel, frame: PaneFrame): readonly Row[] {
	const title = paneTitle('log', frame.focused, titleWords(model), faceRow(model.face), frame.width);
	return paneRows(frame, title, height =>
		model.empty === null ? tail(model, frame.width, height) : emptyBody(model.face, model.empty),
	);
}

function titleWords(model: LogPaneModel): Row {
	const name = model.path?.split('/').pop() ?? '';
	const words: Span[] = [span(name ? `${model.source} ${name}` : model.source)];
	if (model.silentMs !== null && model.silentMs >= 10_000)
		words.push(span(`  silent ${duration(model.silentMs)}`, model.silentMs > 60_000 ? 'warn' : 'dim'));
	words.push(model.scroll > 0 ? span(`  ${model.scroll} lines up (F follows)`, 'accent') : span('  follow', 'dim'));
	if (model.wrap) words.push(span('  wrap', 'dim'));
	if (model.filter) words.push(span(`  filter ${model.filter}, ${model.hidden} hidden`, 'accent'));
	return words;
}

/** From the end upwards, so that only what is seen is cut into lines. */
function tail(model: LogPaneModel, width: number, height: number): readonly Row[] {
	const end = Math.max(1, model.lines.length - model.scroll);
	const rows: Row[] = [];
	for (let at = end - 1; at >= 0 && rows.length < height; at--) {
		const line = model.lines[at];
		if (!line) continue;
		const text = clean(line.text);
		const parts = model.wrap ? wrap(text, width - 1) : [text];
		for (const part of parts.toReversed()) {
			if (rows.length < height) rows.push([span(' '), {text: part, tone: line.level}]);
		}
	}
	return rows.reverse();
}
