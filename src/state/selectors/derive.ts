import type {ConsoleState} from '../state.ts';

/**
 * A selector that computes only when one of its inputs is another value, and hands back the same object otherwise: the
 * store's subscribers compare by reference, and a fresh object for the same facts would draw (or loop) for nothing. Of one
 * state it is asked many times, by panes, by other selectors and by looks: only the first looks at the inputs.
 */
export function derive<Inputs extends readonly unknown[], Result>(
	inputs: {readonly [K in keyof Inputs]: (state: ConsoleState) => Inputs[K]},
	combine: (...values: Inputs) => Result,
	/** From the result before, where that is less work; null where it cannot be. */
	adjust?: (values: Inputs, before: Inputs, result: Result) => Result | null,
): (state: ConsoleState) => Result {
	let before: {readonly state: ConsoleState; readonly values: Inputs; readonly result: Result} | null = null;
	return state => {
		if (before?.state === state) return before.result;
		const values = inputs.map(input => input(state)) as unknown as Inputs;
		const same = before?.values.every((value, index) => Object.is(value, values[index]));
		const kept = before && (same ? before.result : adjust?.(values, before.values, before.result));
		before = {state, values, result: kept ?? combine(...values)};
		return before.result;
	};
}

/**
 * The earlier value for as long as the new one says the same: an answer of every two seconds is a new object each time,
 * and what is made of it need not be. For small values: they are compared as JSON.
 */
export function settled<Value>(input: (state: ConsoleState) => Value): (state: ConsoleState) => Value {
	let seen: Value;
	let kept: {readonly value: Value; readonly text: string} | null = null;
	return state => {
		const value = input(state);
		if (kept && Object.is(value, seen)) return kept.value;
		seen = value;
		const text = JSON.stringify(value);
		if (kept?.text !== text) kept = {value, text};
		return kept.value;
	};
}
