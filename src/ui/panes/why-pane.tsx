import {selectWhy} from '../../state/selectors/details.ts';
import type {WhyLine} from '../../state/selectors/why.ts';
import {bytes, duration, timestamp} from '../format.ts';
import {useConsole} from '../hooks/use-console.ts';
import {type Place, Region} from '../parts/region.tsx';
import {titleRow} from '../parts/title.ts';
import {clean, wrap} from '../safe.ts';
import {type Row, span, type Tone} from '../theme.ts';

export function WhyPane({place}: {readonly place: Place}) {
	const {title, lines} = useConsole(selectWhy);
	const body = lines.flatMap(line => whyRows(line, place.width));
	return (
		<Region place={place} rows={[titleRow(title, false, [span('cause chain', 'dim')], [], place.width), ...body]} />
	);
}

const MARKS: Record<WhyLine['step'], string> = {head: ' ', because: '  <- ', mend: '  => ', note: '     '};

/** A line of the chain, whole: wrapped, never cut. */
export function whyRows(line: WhyLine, width: number): readonly Row[] {
	const text = line.parts.map(words).join('');
	const mark = MARKS[line.step];
	const tone: Tone =
		line.step === 'head' || line.step === 'mend'
			? 'title'
			: line.step === 'note' && line.level === 'plain'
				? 'dim'
				: line.level;
	return wrap(clean(text), width - mark.length - 1).map(
		(part, index): Row => [span(index === 0 ? mark : ' '.repeat(mark.length), 'accent'), {text: part, tone}],
	);
}

function words(part: WhyLine['parts'][number]): string {
	if (typeof part === 'string') return part;
	if ('bytes' in part) return bytes(part.bytes);
	return 'ms' in part ? duration(part.ms) : timestamp(part.at);
}
