import type {ConsoleState} from '../state.ts';

/**
 * A selector that computes only when one of its inputs is another value, and hands back the same object otherwise: the
 * store's subscribers compare by reference, and a fresh object for the same facts would draw (or loop) for nothing.
 */
export function derive<Inputs extends readonly unknown[], Result>(
	inputs: {readonly [K in keyof Inputs]: (state: ConsoleState) => Inputs[K]},
	combine: (...values: Inputs) => Result,
): (state: ConsoleState) => Result {
	let before: {readonly values: Inputs; readonly result: Result} | null = null;
	return state => {
		const values = inputs.map(input => input(state)) as unknown as Inputs;
		if (before?.values.every((value, index) => Object.is(value, values[index]))) return before.result;
		before = {values, result: combine(...values)};
		return before.result;
	};
}
