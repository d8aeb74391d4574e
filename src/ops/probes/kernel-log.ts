import {normaliseBusId} from '../formats/bus-id.ts';
import {type KernelLine, readKernelLine} from '../formats/kernel-lines.ts';
import {DEFINE_MARK, mark, readSections} from '../formats/sections.ts';
import type {Answer, Probe} from './probe.ts';
import {xidAdvice} from './xid.ts';

/** Findings in the kernel's log, oldest first, equal ones folded. */
export type KernelLogFacts = {
	/** `denied`: dmesg is restricted and no journal answered. `unavailable`: neither tool is there. */
	readonly source: 'dmesg' | 'journal' | 'denied' | 'unavailable';
	readonly findings: readonly KernelFinding[];
	/** The newest line that was a finding, as printed; null when there is none. */
	readonly cursor: string | null;
};

export type KernelFinding = {
	readonly kind: 'xid' | 'oom-kill' | 'hung-task' | 'io-error' | 'read-only' | 'storage-full' | 'segfault';
	/** Epoch ms if the log tells wall time, else seconds since boot in `sinceBoot`. */
	readonly at: number | null;
	readonly sinceBootSeconds: number | null;
	readonly count: number;
	readonly text: string;
	readonly busId: string | null;
	readonly xid: number | null;
	readonly pid: number | null;
	readonly advice: string;
};

/** What may be a finding, for the far side: only these lines travel. Extended regular expression. */
const WORTH =
	'Xid \\(|SXid|Out of memory|oom-kill|blocked for more than|I/O error|I/O timeout|controller is down|EXT4-fs error|emounting filesystem read-only|Aborting journal|forced readonly|has been shut down|Filesystem has been|cluster is full|is full or reached|reached pool quota|FULL or reached|segfault at';
const MOST_LINES = 2000;
const SECTIONS = ['dmesg', 'journal'] as const;

/**
 * dmesg first, the kernel's part of the journal where dmesg is denied or missing. Filtered on the far side and bounded; the
 * ring forgets by itself, so every look reads all that is there. Source: util-linux 2.38, systemd 252; fixtures/dmesg.
 */
export const kernelLog: Probe<KernelLogFacts> = {
	id: 'kernel-log',
	lane: 'services',
	everyMs: 5000,
	paceMs: ({source}) => (source === 'dmesg' || source === 'journal' ? 10_000 : 60_000),
	limitMs: 14_000,
	capBytes: 1_048_576,
	script: () =>
		[
			DEFINE_MARK,
			`w() { grep -aE '${WORTH}'"$1" | tail -n ${MOST_LINES}; }; d() { timeout -k 1 5 dmesg "$@" 2>&1; }`,
			`${mark('dmesg')}; o=$({ d --time-format=iso; echo "@ $?"; } | w '|^@ [0-9]'); if [ "\${o##*@ }" = 0 ]; then echo 0; pr "\${o%@ 0}"`,
			'else o=$(d); r=$?; echo "$r"; if [ $r = 0 ]; then pr "$o" | w; else pr "$o" | tail -n 1; fi; fi',
			`${mark('journal')}; [ "\${r:-0}" = 0 ] || { o=$(timeout -k 1 5 journalctl -k -b -q -o short-iso --no-pager -n 20000 2>&1); r=$?; echo "$r"; if [ $r = 0 ]; then printf "%s\\n" "$o" | w; else printf "%s\\n" "$o" | tail -n 1; fi; }; true`,
		].join('\n'),
	parse: parseKernelLog,
};

function parseKernelLog(answer: Answer): KernelLogFacts {
	const sections = readSections('kernel log', answer.stdout, SECTIONS);
	const [ring, journal] = [statusAndText(sections.dmesg), statusAndText(sections.journal)];
	if (ring.status === 0) return {source: 'dmesg', ...findingsIn(ring.text)};
	const journalAnswers = journal.status === 0 && !/No journal files|insufficient permissions/i.test(journal.text);
	if (journalAnswers) return {source: 'journal', ...findingsIn(journal.text)};
	const missing = (status: number) => status === 127 || status === 126;
	const source = missing(ring.status) && missing(journal.status) ? 'unavailable' : 'denied';
	return {source, findings: [], cursor: null};
}

function statusAndText(section: string): {status: number; text: string} {
	const newline = section.indexOf('\n');
	if (newline < 0) return {status: section === '' ? 127 : Number(section), text: ''};
	return {status: Number(section.slice(0, newline)), text: section.slice(newline + 1)};
}

/** Findings of a stretch of log, equal ones folded into the first with a count; the times are those of the first. */
export function findingsIn(text: string): Pick<KernelLogFacts, 'findings' | 'cursor'> {
	const folded = new Map<string, KernelFinding>();
	let cursor: string | null = null;
	for (const raw of text.split('\n')) {
		const finding = findingOf(readKernelLine(raw));
		if (!finding) continue;
		cursor = raw;
		const key = [finding.kind, finding.busId, finding.xid, finding.pid, finding.xid === null ? finding.text : ''].join(
			'|',
		);
		const before = folded.get(key);
		folded.set(key, before ? {...before, count: before.count + 1} : finding);
	}
	return {findings: [...folded.values()], cursor};
}

type Rule = {
	readonly kind: KernelFinding['kind'];
	readonly pattern: RegExp;
	readonly advice: string;
};

const RULES: readonly Rule[] = [
	{
		kind: 'oom-kill',
		pattern: /Out of memory: Killed process (?<pid>\d+)|oom-kill:.*\bpid=(?<other>\d+)/,
		advice: 'the kernel killed it for memory: lower what runs beside it, or raise the limit of its group',
	},
	{
		kind: 'hung-task',
		pattern: /INFO: task .+:(?<pid>\d+) blocked for more than \d+ seconds/,
		advice: 'it waits for storage or the driver and cannot be killed until that answers: see the mounts',
	},
	{
		kind: 'storage-full',
		pattern: /(libceph|ceph|rbd).*(is full|FULL or reached|reached (pool )?quota)/,
		advice: 'the storage cluster is full: writes wait until space is made there; do not kill the writers blindly',
	},
	{
		kind: 'read-only',
		pattern: /[Rr]emounting filesystem read-only|forced readonly|Aborting journal|XFS .*has been shut down/,
		advice: 'the file system takes no more writes: stop the writers, check the disk, then remount',
	},
	{
		kind: 'io-error',
		pattern: /I\/O error|I\/O timeout|controller is down|EXT4-fs error/,
		advice: 'the disk or its link fails: verify what was written around this time',
	},
	{
		kind: 'segfault',
		pattern: /\[(?<pid>\d+)\]: segfault at/,
		advice: 'a program crashed: its own log says more',
	},
];

const XID = /NVRM: Xid \((PCI:[0-9a-fA-F:.]+)[^)]*\): (\d+)(?:, pid='?(\d+))?/;
const SXID = /SXid \((PCI:[0-9a-fA-F:.]+)\): (\d+), *(.*)/;

function findingOf({text, ...when}: KernelLine): KernelFinding | null {
	const xid = XID.exec(text);
	if (xid) {
		const [, bus = '', number = '', pid] = xid;
		return {
			kind: 'xid',
			...when,
			count: 1,
			text,
			busId: normaliseBusId(bus),
			xid: Number(number),
			pid: pid === undefined ? null : Number(pid),
			advice: xidAdvice(Number(number)),
		};
	}
	const sxid = SXID.exec(text);
	if (sxid)
		return {
			kind: 'xid',
			...when,
			count: 1,
			text,
			busId: normaliseBusId(sxid[1] ?? ''),
			xid: null,
			pid: null,
			advice: switchAdvice(sxid[3]),
		};
	for (const {kind, pattern, advice} of RULES) {
		const match = pattern.exec(text);
		if (!match) continue;
		const pid = match.groups?.pid ?? match.groups?.other;
		return {kind, ...when, count: 1, text, busId: null, xid: null, pid: pid === undefined ? null : Number(pid), advice};
	}
	return null;
}

const switchAdvice = (words = ''): string =>
	words.startsWith('Fatal')
		? 'fatal error of the NVSwitch: reset all cards on it together, or reboot'
		: 'error of the NVSwitch: watch; the fabric manager log says more';
