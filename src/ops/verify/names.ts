/** Index of a sample by its file's name, null for other files: `data_7.pt`, `data_7.ckpt` (also `.gz`), `hs_7.safetensors`. */
export function sampleIndex(name: string): number | null {
	const found = /^data_(\d{1,15})\.(?:pt|ckpt)(?:\.gz)?$/.exec(name) ?? /^hs_(\d{1,15})\.safetensors$/.exec(name);
	return found ? Number(found[1]) : null;
}

/** Files to look at. Temporaries have other endings or start with a dot. */
export const isTensorFile = (name: string): boolean =>
	/\.(?:pt|ckpt|safetensors)(?:\.gz)?$/.test(name) && !name.startsWith('.');
