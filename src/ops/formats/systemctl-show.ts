/**
 * Blocks of `systemctl show UNIT…`: one record per unit, blank line between. The order of lines is systemd's; a value may
 * hold `=`; a key that comes twice (ExecStart) is joined by newline. Source: systemd 252; fixtures/systemctl.
 */
export function readShow(text: string): readonly ReadonlyMap<string, string>[] {
	return text
		.split(/\n{2,}/)
		.map(readBlock)
		.filter(block => block.size > 0);
}

function readBlock(text: string): ReadonlyMap<string, string> {
	const block = new Map<string, string>();
	for (const line of text.split('\n')) {
		const equals = line.indexOf('=');
		if (equals < 1) continue;
		const key = line.slice(0, equals);
		const value = line.slice(equals + 1);
		const before = block.get(key);
		block.set(key, before === undefined ? value : `${before}\n${value}`);
	}
	return block;
}

const UNIT_MS: Readonly<Record<string, number>> = {
	us: 0.001,
	ms: 1,
	s: 1000,
	min: 60_000,
	h: 3_600_000,
	d: 86_400_000,
	w: 604_800_000,
	month: 2_629_800_000,
	y: 31_557_600_000,
};

/** A time span as systemd prints it (`1min 30s`), in ms; null for `infinity`, nothing, or a word that does not fit. */
export function spanMs(text: string): number | null {
	if (text === '' || text === 'infinity') return null;
	let ms = 0;
	for (const part of text.split(' ')) {
		const match = /^([\d.]+)([a-z]+)$/.exec(part);
		const unit = UNIT_MS[match?.[2] ?? ''];
		if (!match || unit === undefined) return null;
		ms += Number(match[1]) * unit;
	}
	return ms;
}
