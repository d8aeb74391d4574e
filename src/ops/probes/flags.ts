import {show} from '../command.ts';
import {DEFINE_MARK, mark, readSections} from '../formats/sections.ts';
import {flagsInHelp} from '../hook/package-flags.ts';
import type {Answer, Probe, ProbeContext} from './probe.ts';

/** What the installed SGLang says of its own flags, asked where its source does not tell. */
export type FlagsFacts = {
	/** The package that was asked (`packageKey`). */
	readonly key: string;
	/** null: it told none; `why` says so in words. */
	readonly flags: readonly string[] | null;
	readonly why: string;
	readonly askedAt: number;
};

const LIMIT_S = 60;
/** A host under load, a cache that was cold: what failed once may be asked again. */
const AGAIN_MS = 30 * 60_000;
const ENDED = 'relight-help-ended ';
const SECTIONS = ['help'] as const;

/**
 * `--help` imports all of SGLang: seconds, and once per package. As a launch would run it, in a lane where little waits, as
 * a child whose pipe is read behind a limit: a Python on a dead mount is not ended by SIGKILL. Source: argparse.
 */
export const flags: Probe<FlagsFacts> = {
	id: 'flags',
	lane: 'command-lines',
	everyMs: 10_000,
	limitMs: (LIMIT_S + 6) * 1_000,
	capBytes: 1_048_576,
	script: ({target: {server}, hints, last}) => {
		const {unreadPackage} = hints;
		if (!server || !unreadPackage) return null;
		if (last?.key === unreadPackage && (last.flags || hints.nowMs - last.askedAt < AGAIN_MS)) return null;
		const settings = Object.entries(server.env).map(([name, value]) => `${name}=${value}`);
		const ask = ['timeout', '-k', '1', String(LIMIT_S), server.python, '-m', 'sglang.launch_server', '--help'];
		return [
			`${DEFINE_MARK}; ${mark('help')}`,
			`{ { ( cd / && exec env ${show([...settings, ...ask])} ) 2>&1; echo "${ENDED}$?"; } & } | timeout ${LIMIT_S + 2} cat; true`,
		].join('\n');
	},
	parse: parseFlags,
};

function parseFlags(answer: Answer, {target, hints}: ProbeContext<FlagsFacts>): FlagsFacts {
	const {help} = readSections('sglang', answer.stdout, SECTIONS);
	const at = help.lastIndexOf(ENDED);
	const status = at < 0 ? null : Number.parseInt(help.slice(at + ENDED.length), 10);
	const text = at < 0 ? help : help.slice(0, at);
	const found = status === 0 ? flagsInHelp(text) : null;
	const why = whyNone(target.server?.python ?? '', status, text.trim().split('\n').pop() ?? '');
	return {key: hints.unreadPackage ?? '', flags: found, why: found ? '' : why, askedAt: hints.nowMs};
}

function whyNone(python: string, status: number | null, last: string): string {
	const asked = `${python} -m sglang.launch_server --help`;
	if (status === null || status === 124 || status === 137) return `${asked} gave no answer in ${LIMIT_S} s`;
	if (status === 0) return `${asked} names no flag of a model server`;
	return `${asked}: ${last.slice(0, 200) || `exit ${status}`}`;
}
