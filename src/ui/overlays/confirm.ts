import type {Plan, PlanTarget, Step} from '../../ops/operations/operation.ts';
import {redact} from '../../ops/redact.ts';
import {READING_MS} from '../../state/confirm.ts';
import type {ConfirmOverlay, ConsoleState} from '../../state/state.ts';
import {clean, wrap} from '../safe.ts';
import {type Row, type Span, span, type Tone} from '../theme.ts';
import type {Layer, Screen} from './layer.ts';

const TIERS = {1: 'reversible', 2: 'destructive, one target', 3: 'wide'} as const;

/** Everything that will be done, literally, and how to undo it; then the one gesture that starts it. */
export function confirmLayer(dialog: ConfirmOverlay, state: ConsoleState, screen: Screen): Layer {
	const width = Math.max(20, Math.min(screen.width - 6, 112));
	const {plan} = dialog;
	return {
		title: [
			span(plan.title, 'title'),
			span(`  on ${state.target.name}  tier ${plan.tier}, ${TIERS[plan.tier]}`, 'dim'),
		],
		body: planRows(plan, width),
		foot: [
			[],
			...paceRow(dialog),
			...prompt(dialog, state),
			...(dialog.complaint ? [[span(dialog.complaint, 'bad')]] : []),
		],
		stands: {by: 'scroll', at: dialog.scroll},
		width,
	};
}

/** Frozen targets, what is left alone, warnings, every command of every step, the inverse. */
export function planRows(plan: Plan, width: number): readonly Row[] {
	const commands = plan.steps.filter(step => step.kind !== 'wait').length;
	return [
		...plan.warnings.flatMap(words => block('! ', words, width, 'warn')),
		...section('acts on', plan.targets, width, 'plain'),
		...section('leaves alone', plan.excluded, width, 'dim'),
		[span(`does ${commands} command${commands === 1 ? '' : 's'} in ${plan.steps.length} steps`, 'title')],
		...plan.steps.flatMap((step, index) => stepRows(step, index + 1, width)),
		...(plan.inverse === null
			? [[span('no command undoes this', 'warn')]]
			: [[span('undone by', 'title')], ...block('  $ ', plan.inverse, width, 'accent')]),
	];
}

function section(title: string, targets: readonly PlanTarget[], width: number, tone: Tone): readonly Row[] {
	if (targets.length === 0) return [];
	return [
		[span(`${title} (${targets.length}, fixed when this opened)`, 'title')],
		...targets.flatMap(target => block('  ', target.says, width, tone)),
	];
}

function stepRows(step: Step, number: number, width: number): readonly Row[] {
	const head = block(`${String(number).padStart(2)} `, step.says, width, 'plain');
	if (step.kind === 'wait') return head;
	const sent = step.kind === 'send' ? block('    < ', step.source, width, 'dim') : [];
	const lines = redact(step.script)
		.split('\n')
		.flatMap((line, index) => block(index === 0 ? '   $ ' : '     ', line, width, 'accent'));
	return [...head, ...lines, ...sent];
}

/** Whole, never cut: what is shown is what runs. */
function block(mark: string, text: string, width: number, tone: Tone): readonly Row[] {
	const indent = ' '.repeat(mark.length);
	return wrap(clean(text), width - mark.length).map(
		(line, index): Row => [span(index === 0 ? mark : indent, 'dim'), {text: line, tone}],
	);
}

function paceRow({plan, stepwise}: ConfirmOverlay): readonly Row[] {
	if (plan.operation !== 'recover') return [];
	return [
		stepwise
			? [span('step by step', 'title'), span(': waits before each further operation   Tab: all at once', 'dim')]
			: [span('all at once', 'title'), span('   Tab: step by step', 'dim')],
	];
}

function prompt(dialog: ConfirmOverlay, state: ConsoleState): readonly Row[] {
	const {plan, typed, button, openedAt} = dialog;
	const dry: Span[] = state.session.dryRun ? [span(' DRY-RUN: nothing will be sent ', 'inverse'), span('  ')] : [];
	if (plan.tier === 1) {
		const cancel = button === 'cancel';
		return [
			[
				...dry,
				span(cancel ? '[> Cancel <]' : '   Cancel   ', cancel ? 'inverse' : 'plain'),
				span('   '),
				span(cancel ? '   Do it   ' : '[> Do it <]', cancel ? 'plain' : 'inverse'),
			],
		];
	}
	const left = plan.tier === 3 ? Math.ceil((READING_MS - (state.nowMs - openedAt)) / 1000) : 0;
	const ready = typed === plan.confirmWord;
	const after = !ready ? 'Esc cancels' : left > 0 ? `Enter works in ${left} s` : 'Enter does it, Esc cancels';
	return [
		[
			...dry,
			span('type '),
			span(plan.confirmWord, 'title'),
			span(' to confirm: '),
			span(`${typed}_`, ready ? 'good' : 'accent'),
			span(`   ${after}`, ready ? 'plain' : 'dim'),
		],
	];
}
