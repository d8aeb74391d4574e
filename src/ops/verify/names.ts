const MOST_DIGITS = 15;

/** Index of a sample by its file's name, null for other files: `data_7.pt`, `data_7.ckpt` (also `.gz`), `hs_7.safetensors`. */
export function sampleIndex(name: string): number | null {
	const data = name.startsWith('data_');
	if (!data && !name.startsWith('hs_')) return null;
	// Digit by digit, and no copy of the rest: asked a million times in a listing, where a pattern costs as much again.
	const from = data ? 5 : 3;
	let index = 0;
	let at = from;
	for (; at < name.length; at++) {
		const digit = name.charCodeAt(at) - 48;
		if (digit < 0 || digit > 9) break;
		index = index * 10 + digit;
	}
	if (at === from || at > from + MOST_DIGITS) return null;
	const endsIn = (ending: string): boolean => name.length - at === ending.length && name.endsWith(ending);
	if (!data) return endsIn('.safetensors') ? index : null;
	return endsIn('.pt') || endsIn('.ckpt') || endsIn('.pt.gz') || endsIn('.ckpt.gz') ? index : null;
}

/** Files to look at. Temporaries have other endings or start with a dot. */
export const isTensorFile = (name: string): boolean =>
	/\.(?:pt|ckpt|safetensors)(?:\.gz)?$/.test(name) && !name.startsWith('.');
