/** The only place where quantities become text. Inside: bytes, ms, epoch ms, fractions. Unknown is `-`, never 0. */
export const UNKNOWN = '-';

const BINARY = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const;
const GIB = 2 ** 30;

/** `75.8 GiB`: binary units, always named. */
export function bytes(count: number | null): string {
	if (count === null) return UNKNOWN;
	let value = count;
	let unit = 0;
	while (Math.abs(value) >= 999.5 && unit < BINARY.length - 1) {
		value /= 1024;
		unit++;
	}
	return `${unit === 0 ? String(Math.round(value)) : short(value)} ${BINARY[unit]}`;
}

/** `75.8Gi`: for narrow columns. */
export const bytesShort = (count: number | null): string =>
	count === null ? UNKNOWN : bytes(count).replace(' ', '').replace(/iB$/, 'i');

/** `75.8`, under a column title that says GiB. */
export const gib = (count: number | null): string => (count === null ? UNKNOWN : (count / GIB).toFixed(1));

/** `75.8/96.0`, under a column title that says GiB. */
export const gibOf = (used: number | null, total: number | null): string => `${gib(used)}/${gib(total)}`;

/** `1.9/12.0 TiB`: both in the unit of the total. */
export function bytesOf(used: number | null, total: number | null): string {
	if (total === null) return `${bytes(used)} of ?`;
	const unit = Math.min(Math.max(0, Math.floor(Math.log2(Math.max(total, 1)) / 10)), BINARY.length - 1);
	const scale = 1024 ** unit;
	return `${used === null ? '?' : short(used / scale)}/${short(total / scale)} ${BINARY[unit]}`;
}

function short(value: number): string {
	if (value === 0) return '0';
	if (Math.abs(value) >= 99.95) return value.toFixed(0);
	return value.toFixed(1);
}

/** `0.6s 42s 4m12s 2h41m 3d04h`: at most two parts. */
export function duration(ms: number | null): string {
	if (ms === null || !Number.isFinite(ms)) return UNKNOWN;
	const seconds = Math.max(0, Math.floor(ms / 1000));
	if (seconds < 60) return `${seconds}s`;
	const minutes = Math.floor(seconds / 60);
	if (minutes < 60) return `${minutes}m${two(seconds % 60)}s`;
	const hours = Math.floor(minutes / 60);
	if (hours < 24) return `${hours}h${two(minutes % 60)}m`;
	return `${Math.floor(hours / 24)}d${two(hours % 24)}h`;
}

/** Age of a value: tenths below ten seconds, because freshness is felt there. */
export function age(ms: number | null): string {
	if (ms === null) return UNKNOWN;
	return ms < 9_950 ? `${(Math.max(0, ms) / 1000).toFixed(1)}s` : duration(ms);
}

/** `4h12m–5h02m`, or one value where both agree. */
export function range(low: number, high: number): string {
	const [from, to] = [duration(low), duration(high)];
	return from === to ? from : `${from}–${to}`;
}

/** 79 → ` 79%` by padding of the caller; a fraction comes as 0–1. */
export const percent = (value: number | null): string => (value === null ? UNKNOWN : `${Math.round(value)}%`);
export const percentOf = (fraction: number | null): string => percent(fraction === null ? null : fraction * 100);
/** 49.4%: for progress, where a tenth is an hour. */
export const percentFine = (fraction: number | null): string =>
	fraction === null ? UNKNOWN : `${(Math.floor(fraction * 1000) / 10).toFixed(1)}%`;

/** `1.12/s`, `812/s`. */
export function rate(perSecond: number | null, unit = ''): string {
	if (perSecond === null) return UNKNOWN;
	const digits = perSecond >= 100 ? 0 : perSecond >= 10 ? 1 : 2;
	return `${perSecond.toFixed(digits)}${unit ? ` ${unit}` : ''}/s`;
}

export const byteRate = (perSecond: number | null): string => (perSecond === null ? UNKNOWN : `${bytes(perSecond)}/s`);

/** 18421 → `18,421`. */
export const count = (value: number | null): string =>
	value === null ? UNKNOWN : String(Math.round(value)).replace(/\B(?=(\d{3})+(?!\d))/g, ',');

/** One word with its number: `1 hole`, `3 holes`. */
export const some = (value: number, one: string, many = `${one}s`): string =>
	`${count(value)} ${value === 1 ? one : many}`;

/** `17:21:04` in the operator's zone. */
export function clock(at: number): string {
	const when = new Date(at);
	return `${two(when.getHours())}:${two(when.getMinutes())}:${two(when.getSeconds())}`;
}

/** `2026-03-02 17:21:04`. */
export function timestamp(at: number): string {
	const when = new Date(at);
	return `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())} ${clock(at)}`;
}

const two = (value: number): string => String(value).padStart(2, '0');
