import type {WrittenEntry} from '../state/journal.ts';
import type {Summary} from '../state/summary.ts';
import {bytes, clock, count, gib, range, rate, timestamp} from './format.ts';
import {clean} from './safe.ts';

/**
 * The recovery of one host as Markdown, made from its journal alone: first the six lines that a message needs, then the
 * cause, what was done with the literal commands, before and after, and what is proved of the data and what is not.
 */
export function recoveryReport(host: string, written: readonly WrittenEntry[]): string {
	const entries = written.map(cleaned);
	const taken = entries.flatMap(({at, summary}) => (summary ? [{at, summary}] : []));
	const first = taken[0];
	const last = taken.at(-1);
	if (!first || !last) return `# ${host}\n\nNothing was done in this journal.\n`;
	return [
		`# Recovery of ${host}, ${timestamp(first.at)} to ${timestamp(entries.at(-1)?.at ?? last.at)}`,
		sixLines(first.summary, last.summary, last.at),
		cause(first.summary),
		actions(entries),
		beforeAndAfter(first.summary, last.summary),
		data(last.summary),
		unverified(last.summary),
		`Source: the journal of ${host}, ${entries.length} entries by ${[...new Set(entries.map(({operator}) => operator))].join(', ')}; times are of this machine's zone.`,
	]
		.filter(part => part !== '')
		.join('\n\n')
		.concat('\n');
}

/** Words come from hosts: nothing in them may start a line, a link or a fence of its own. Commands keep their lines. */
function cleaned(entry: WrittenEntry): WrittenEntry {
	const {command, ...rest} = entry;
	const said = JSON.parse(JSON.stringify(rest), (_, value) =>
		typeof value === 'string' ? clean(value).replace(/([\\`*_[\]<>#|])/g, '\\$1') : value,
	);
	return {...said, kind: entry.kind, command: command?.split('\n').map(clean).join('\n') ?? null};
}

/** A fence that nothing inside can close. */
function fenced(command: string): string {
	const longest = Math.max(2, ...[...command.matchAll(/`+/g)].map(([run]) => run.length));
	const fence = '`'.repeat(longest + 1);
	return `${fence}sh\n${command}\n${fence}`;
}

const unknown = 'not known';
const told = (value: number | null | undefined): string =>
	value === null || value === undefined ? unknown : count(value);

function sixLines(before: Summary, after: Summary, at: number): string {
	const {run, samples, output} = after;
	const left = samples && samples.expected !== null ? samples.expected - samples.whole : null;
	const eta = run?.etaMs ? `${range(run.etaMs.low, run.etaMs.high)} from ${clock(at)}` : unknown;
	return [
		`- Skipped: ${told(run?.skipped ?? before.samples?.whole)} samples that were there`,
		`- New: ${told(run?.extracted)} samples${left === null ? '' : `, ${count(left)} to go`}`,
		`- Errors: ${told(run?.errors)}`,
		`- Rate: ${run?.samplesPerSecond == null ? unknown : rate(run.samplesPerSecond, 'samples')}${run?.tokensPerSecond == null ? '' : `, ${rate(run.tokensPerSecond, 'tokens')}`}`,
		`- ETA: ${eta}`,
		`- Space: ${output ? `${bytes(output.freeBytes)} free on ${output.mount}` : unknown}`,
	].join('\n');
}

function cause({causes, alerts}: Summary): string {
	const chains = causes.flatMap(({of, links}) => [`- ${of}`, ...links.map(words => `  - ${words}`)]);
	return [
		'## Cause',
		...(chains.length > 0 ? chains : ['- no chain could be told']),
		...alerts.map(words => `- ${words}`),
	].join('\n');
}

function actions(entries: readonly WrittenEntry[]): string {
	const lines: string[] = ['## What was done'];
	for (const entry of entries) {
		const {kind, plan, outcome, command} = entry;
		const who = `${clock(entry.at)} ${entry.operator}`;
		if (plan && kind === 'intent') {
			lines.push('', `### ${clock(entry.at)} ${plan.title}`, '');
			lines.push(...plan.targets.map(says => `- on ${says}`), ...plan.excluded.map(says => `- left alone: ${says}`));
			lines.push(...plan.warnings.map(words => `- note: ${words}`));
			if (plan.inverse) lines.push(`- way back: ${plan.inverse}`);
		} else if (plan && outcome) lines.push('', `${clock(entry.at)} ended: **${outcome}**`);
		else if (kind === 'intent') {
			lines.push('', `${who}: ${entry.words}`);
			if (command !== null) lines.push('', fenced(command));
		} else if (kind === 'outcome') lines.push('', `${clock(entry.at)} ${entry.level}: ${entry.words}`);
	}
	return lines.join('\n');
}

function beforeAndAfter(before: Summary, after: Summary): string {
	const rows: (readonly [what: string, one: string, other: string])[] = [
		['cards', cards(before), cards(after)],
		['unwanted units', units(before), units(after)],
		['server', server(before), server(after)],
		['samples', samples(before), samples(after)],
		['extraction', before.run?.state ?? 'none', after.run?.state ?? 'none'],
	];
	return [
		'## Before and after',
		'',
		'| | before | after |',
		'|---|---|---|',
		...rows.map(row => `| ${row.join(' | ')} |`),
	].join('\n');
}

function cards({cards: all}: Summary): string {
	if (!all) return unknown;
	const used = all.map(({usedBytes}) => gib(usedBytes)).join(' ');
	const holders = [...new Set(all.flatMap(card => card.holders))];
	return `${used} GiB${holders.length > 0 ? `, held by ${holders.join(', ')}` : ', held by nobody'}`;
}

const units = ({units: all}: Summary): string =>
	all === null
		? unknown
		: all.map(({unit, state, comesBack}) => `${unit} ${state}, at boot: ${comesBack}`).join('; ') || 'none seen';

const server = ({server: one}: Summary): string =>
	one === null
		? unknown
		: one.process === 'none'
			? 'none'
			: `${one.process}, ${one.phase}${one.pid === null ? '' : ` (pid ${one.pid})`}`;

const samples = ({samples: all}: Summary): string =>
	all === null
		? unknown
		: `${count(all.whole)} whole of ${told(all.expected)}${unread(all) > 0 ? `, ${count(unread(all))} not looked at yet` : ''}, ${count(all.holes)} holes, ${count(all.suspects)} suspect, ${count(all.quarantined)} set aside`;

const unread = ({present, whole, suspects}: NonNullable<Summary['samples']>): number => present - whole - suspects;

function data({samples: all, run}: Summary): string {
	if (!all) return '## The data\n\n- the output tree was not seen';
	return [
		'## The data',
		'',
		`- ${count(all.whole)} files are whole by end record and size (\`structure\` and deeper: \`relight verify\`)`,
		...(unread(all) > 0 ? [`- ${count(unread(all))} files were not looked at yet`] : []),
		`- ${count(all.suspects)} are suspect, ${count(all.quarantined)} set aside; nothing was deleted`,
		...(run?.message ? [`- the extractor: ${run.message}`] : []),
	].join('\n');
}

function unverified({samples: all, run, output}: Summary): string {
	const open = [
		...(all
			? ['checksums and values of files that this run did not write: `relight verify --level values`']
			: ['the output tree']),
		...(run === null ? ['whether the extraction goes on'] : []),
		...(output?.freeBytes == null ? ['free space of the output'] : []),
	];
	return ['## Not verified', '', ...open.map(words => `- ${words}`)].join('\n');
}
