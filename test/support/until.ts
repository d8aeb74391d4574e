/** Waits for a condition, never for a time. Throws with `what` when it did not come true. */
export async function until(
	condition: () => boolean | Promise<boolean>,
	limitMs = 40_000,
	what: string | (() => string) = 'the condition',
): Promise<void> {
	const end = Date.now() + limitMs;
	while (!(await condition())) {
		if (Date.now() > end)
			throw new Error(`${typeof what === 'string' ? what : what()} did not come true in ${limitMs} ms`);
		await new Promise(resolve => setTimeout(resolve, 20));
	}
}
