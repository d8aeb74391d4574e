import type {LogFacts} from '../../ops/probes/log.ts';
import {redact} from '../../ops/redact.ts';
import type {ConsoleState, ViewState} from '../state.ts';
import {derive} from './derive.ts';
import {type Face, face, type Level} from './face.ts';
import {factsOnScreen, nowOnScreen} from './on-screen.ts';

export type LogLine = {readonly text: string; readonly level: Level};

export type LogPaneModel = {
	readonly face: Face;
	readonly source: ViewState['logSource'];
	readonly path: string | null;
	/** Why there are no lines, in words; null when there are. */
	readonly empty: string | null;
	/** Time since the file last grew; null where it is not known. */
	readonly silentMs: number | null;
	readonly lines: readonly LogLine[];
	readonly filter: string;
	readonly hidden: number;
	/** Lines from the end; 0 follows. */
	readonly scroll: number;
	readonly wrap: boolean;
};

type Source = {path: string | null; lines: readonly LogLine[]; empty: string | null; modifiedAt: number | null};

const source = derive(
	[
		state => state.view.logSource,
		state => factsOnScreen(state).log?.last?.value ?? null,
		state => factsOnScreen(state)['kernel-log']?.last?.value ?? null,
	],
	(which, log, kernel): Source => {
		if (which !== 'kernel') return fileSource(log);
		const lines = (kernel?.findings ?? []).map((finding): LogLine => {
			const times = finding.count > 1 ? ` (${finding.count} times)` : '';
			const advice = finding.advice ? `  -> ${finding.advice}` : '';
			return {
				text: `${finding.kind}: ${finding.text}${times}${advice}`,
				level: finding.kind === 'xid' ? 'bad' : 'warn',
			};
		});
		const none = {
			denied: 'the kernel log is closed to this user',
			unavailable: 'neither dmesg nor journalctl is there',
		};
		const why =
			kernel === null
				? 'not yet heard'
				: kernel.source === 'denied' || kernel.source === 'unavailable'
					? none[kernel.source]
					: 'nothing found in the kernel log';
		return {path: kernel?.source ?? null, lines, empty: lines.length > 0 ? null : why, modifiedAt: null};
	},
);

export const selectLog: (state: ConsoleState) => LogPaneModel = derive(
	[
		source,
		state => factsOnScreen(state)[state.view.logSource === 'kernel' ? 'kernel-log' : 'log'],
		nowOnScreen,
		state => state.view.logSource,
		state => state.view.filter.log,
		state => state.view.logScroll,
		state => state.view.logWrap,
	],
	({path, lines, empty, modifiedAt}, reading, nowMs, which, filter, scroll, wrap) => {
		const left = filter === '' ? lines : lines.filter(line => matches(line.text, filter));
		return {
			face: face(which === 'kernel' ? 'kernel-log' : 'log', reading, nowMs),
			source: which,
			path,
			empty: empty ?? (left.length === 0 ? `no line matches ${filter}` : null),
			silentMs: modifiedAt === null ? null : Math.max(0, nowMs - modifiedAt),
			lines: left,
			filter,
			hidden: lines.length - left.length,
			scroll,
			wrap,
		};
	},
);

function fileSource(log: LogFacts | null): Source {
	if (log === null) return {path: null, lines: [], empty: 'not yet heard', modifiedAt: null};
	const lines = log.lines.map((text): LogLine => ({text: redact(text), level: levelOf(text)}));
	const why = {ok: 'the file is empty', absent: 'there is no such file', denied: 'the file may not be read'}[log.state];
	return {path: log.path, lines, empty: lines.length > 0 ? null : why, modifiedAt: log.modifiedAt};
}

function levelOf(text: string): Level {
	if (/\b(error|fatal|critical|traceback|exception|killed|out of memory|oom|abort)/i.test(text)) return 'bad';
	if (/\bwarn(ing)?\b/i.test(text)) return 'warn';
	return 'plain';
}

function matches(text: string, filter: string): boolean {
	const inverted = filter.startsWith('!');
	const wanted = (inverted ? filter.slice(1) : filter).toLowerCase();
	return wanted === '' || text.toLowerCase().includes(wanted) !== inverted;
}
