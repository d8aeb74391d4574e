/** `0.5.10.post1`, `v0.5.9rc0+cu128` → [0, 5, 10]; null when it is none. Pre-releases count as their release. */
export function parseVersion(text: string | null): readonly number[] | null {
	const match = /^v?(\d+)\.(\d+)(?:\.(\d+))?/.exec(text ?? '');
	return match ? [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)] : null;
}

/** Whether `version` is `wanted` or newer; null when the version is unknown. */
export function atLeast(version: string | null, wanted: string): boolean | null {
	const have = parseVersion(version);
	const want = parseVersion(wanted);
	if (!have || !want) return null;
	for (const [at, part] of want.entries()) {
		const own = have[at] ?? 0;
		if (own !== part) return own > part;
	}
	return true;
}

/** First releases with what the hook needs. Source: SGLang's tags v0.4.9 to v0.5.18. */
export const SINCE = {
	forwardHooks: '0.5.6',
	healthWithoutGeneration: '0.5.6',
	ridsInBatch: '0.5.10',
	fusionCanBeOff: '0.5.10',
	piecewiseGraphs: '0.5.10',
	oneGraphSwitch: '0.5.14',
} as const;
