/**
 * CPU in milliseconds that a script and its ended children have used so far, from the shell's `times`: two lines of two
 * values (`0m0.010000s 0m0.020000s`). 0 where the shell counts in steps of 10 ms and less was used, or says nothing.
 */
export function cpuMs(text: string): number {
	let ms = 0;
	for (const [, minutes, seconds] of text.matchAll(/(\d+)m([\d.]+)s/g)) {
		ms += Number(minutes) * 60_000 + Number(seconds) * 1000;
	}
	return Math.round(ms);
}
