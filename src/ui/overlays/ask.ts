import {promptsOf, type Question} from '../../ops/transports/question.ts';
import type {AskOverlay} from '../../state/state.ts';
import {clean, wrap} from '../safe.ts';
import {type Row, span, type Tone} from '../theme.ts';
import type {Layer, Screen} from './layer.ts';

/** A server's own words take no more of the screen than this. */
const MOST_LINES = 8;

/** What a route must hear from the operator. What is typed is not shown, unless the one who asks allows it. */
export function askLayer({question, at, shown, filled, complaint}: AskOverlay, screen: Screen): Layer {
	const width = Math.max(20, Math.min(screen.width - 6, 84));
	const prompt = promptsOf(question)[at];
	const typed = prompt?.echo ? `${clean(shown)}_` : filled ? '(not shown)_' : '_';
	const label = wrap(
		`${clean(prompt?.text ?? '')
			.trim()
			.replace(/:$/, '')}:`,
		width,
	).slice(0, MOST_LINES);
	return {
		title: [span(TITLES[question.kind], 'title')],
		body: bodyOf(question).flatMap(({text, tone}) =>
			wrap(clean(text), width).map((line): Row => [{text: line, tone: tone ?? 'plain'}]),
		),
		foot: [
			[],
			...label.map((line): Row => [span(line, 'title')]),
			[span(typed, 'accent')],
			...(complaint ? [[span(complaint, 'bad')]] : []),
			[
				span(
					question.kind === 'host-key'
						? 'Enter keeps it, Esc refuses; C asks again later'
						: 'Enter answers, Esc skips; C asks again later',
					'dim',
				),
			],
		],
		stands: {by: 'scroll', at: 0},
		width,
	};
}

const TITLES: Record<Question['kind'], string> = {
	passphrase: 'passphrase of a key',
	password: 'password',
	prompts: 'the host asks',
	'host-key': 'unknown host key',
};

type Line = {readonly text: string; readonly tone?: Tone};

function bodyOf(question: Question): readonly Line[] {
	switch (question.kind) {
		case 'passphrase':
			return [{text: `${question.file} is encrypted.`}, MEMORY];
		case 'password':
			return [{text: `${question.account} takes a password.`}, MEMORY];
		case 'prompts': {
			const own = [question.title, ...question.instructions.split('\n')].filter(line => line.trim() !== '');
			return [
				{text: `${question.account} asks before it lets anyone in. These are its own words:`},
				...own.slice(0, MOST_LINES).map((text): Line => ({text, tone: 'accent'})),
			];
		}
		case 'host-key':
			return [
				{text: `No line of known_hosts names ${question.name}. Its key is`},
				{text: question.label, tone: 'title'},
				{text: 'Compare it with what that host shows on a console of its own, or with what its owner says.'},
				{text: `yes keeps it in ${question.file}`, tone: 'dim'},
			];
	}
}

const MEMORY: Line = {text: 'It is kept in memory until this program ends, and written nowhere.', tone: 'dim'};
