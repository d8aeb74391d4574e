/**
 * A line of the kernel's log without its stamp. `at` (epoch ms) where the stamp is wall time with its zone, else seconds
 * since boot; both null where it has none that can be placed. Accepts dmesg plain, iso, ctime and decoded, /dev/kmsg, and
 * journalctl -k in short-iso. Source: util-linux 2.38, systemd 252; fixtures/dmesg.
 */
export type KernelLine = {
	readonly at: number | null;
	readonly sinceBootSeconds: number | null;
	readonly text: string;
};

const RECORD = /^\d+,\d+,(\d+),[^;]*;(.*)$/;
const ISO = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d+))?([+-]\d\d:?\d\d|Z)? +(.*)$/;
const SECONDS = /^\[ *(\d+\.\d+)\] ?(.*)$/;
/** Local time without a zone: good for reading, not for placing. */
const CTIME = /^\[[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d \d{4}\] ?(.*)$/;
const DECODED = /^[a-z]+ *:[a-z]+ *: /;
const FROM_JOURNAL = /^\S+ kernel: /;

export function readKernelLine(raw: string): KernelLine {
	const line = raw.replace(/^<\d+>/, '').replace(DECODED, '');
	const record = RECORD.exec(line);
	if (record) return {at: null, sinceBootSeconds: Number(record[1]) / 1e6, text: record[2] ?? ''};
	const seconds = SECONDS.exec(line);
	if (seconds) return {at: null, sinceBootSeconds: Number(seconds[1]), text: seconds[2] ?? ''};
	const ctime = CTIME.exec(line);
	if (ctime) return {at: null, sinceBootSeconds: null, text: ctime[1] ?? ''};
	const iso = ISO.exec(line);
	if (!iso) return {at: null, sinceBootSeconds: null, text: line};
	const [, time = '', fraction = '0', zone, text = ''] = iso;
	const offset = zone?.replace(/^([+-]\d\d):?(\d\d)$/, '$1:$2');
	const at = offset === undefined ? null : Date.parse(`${time}.${fraction.slice(0, 3).padEnd(3, '0')}${offset}`);
	return {at, sinceBootSeconds: null, text: text.replace(FROM_JOURNAL, '')};
}
