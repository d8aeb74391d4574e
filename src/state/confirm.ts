import {commandsOf, type Plan} from '../ops/operations/operation.ts';
import type {ConfirmOverlay} from './state.ts';

/** Keys typed ahead over a slow link land in the dialog that just opened: they count only after this. */
export const TYPE_AHEAD_MS = 300;
/** Tier 3: time to read before Enter works. */
export const READING_MS = 3_000;

/** Why Enter does nothing yet, or null when it may. Pure. */
export function whyNotYet(dialog: ConfirmOverlay, nowMs: number): string | null {
	const {plan, typed, button, openedAt} = dialog;
	const openMs = nowMs - openedAt;
	if (openMs < TYPE_AHEAD_MS) return 'too soon: typed ahead';
	if (plan.tier === 1) return button === 'go' ? null : 'the button stands on Cancel';
	if (typed !== plan.confirmWord) return `type "${plan.confirmWord}" to confirm`;
	if (plan.tier === 3 && openMs < READING_MS)
		return `wait ${Math.ceil((READING_MS - openMs) / 1_000)} s more: this is wide`;
	return null;
}

/** What changed between what was shown and what would be done now; null when nothing did. */
export function difference(shown: Plan, now: Plan): string | null {
	const names = (plan: Plan) => new Set(plan.targets.map(target => target.identity));
	const before = names(shown);
	const after = names(now);
	const gone = [...before].filter(name => !after.has(name));
	const fresh = [...after].filter(name => !before.has(name));
	if (fresh.length > 0) return `new since it was shown: ${fresh.join(', ')}`;
	if (gone.length > 0) return `gone since it was shown: ${gone.join(', ')}`;
	return commandsOf(shown) === commandsOf(now) ? null : 'the commands are not the ones that were shown';
}
