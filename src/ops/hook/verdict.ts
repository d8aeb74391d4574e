import type {Target} from '../target.ts';
import {flagValue} from './launch-flags.ts';
import type {HookFacts} from './look.ts';
import {atLeast, SINCE} from './sglang-version.ts';

export type Finding = {readonly level: 'ok' | 'warning' | 'critical'; readonly words: string};

export type HookVerdict = {
	/** What would dump hidden states if the server were launched now. */
	readonly way: 'forward hook' | 'source patch' | 'both' | 'none';
	readonly findings: readonly Finding[];
};

const ok = (words: string): Finding => ({level: 'ok', words});
const warning = (words: string): Finding => ({level: 'warning', words});
const critical = (words: string): Finding => ({level: 'critical', words});

/** What the facts mean. `ownSha256` is the hook that this relight carries. Pure. */
export function judgeHook(target: Target, facts: HookFacts, ownSha256: string): HookVerdict {
	const patch = judgePatch(target, facts);
	const hook = judgeModule(target, facts, ownSha256);
	const way = hook.active ? (patch.active ? 'both' : 'forward hook') : patch.active ? 'source patch' : 'none';
	const findings = [...judgePackage(target, facts), ...patch.findings, ...hook.findings];
	if (way === 'none') findings.push(critical('nothing would dump hidden states: neither patch nor hook is active'));
	if (way === 'both') findings.push(warning('patch and hook are both active: each request would be dumped twice'));
	return {way, findings};
}

function judgePackage({server}: Target, {sglang, python}: HookFacts): Finding[] {
	if (!sglang) return [critical(`${server?.python ?? 'python'} (${python}) finds no sglang`)];
	const version = sglang.version ?? 'of unknown version';
	return [ok(`sglang ${version} is imported from ${sglang.directory}`)];
}

function judgePatch({server}: Target, {sglang, tree}: HookFacts): {active: boolean; findings: Finding[]} {
	const findings: Finding[] = [];
	const source = sglang?.source ?? null;
	const bytecode = sglang?.bytecode ?? null;
	const runsBytecode = bytecode?.state === 'fits' || bytecode?.state === 'never checked';
	const inRun = runsBytecode && bytecode ? bytecode.marked : (source?.marked ?? false);
	if (sglang && !source) findings.push(warning(`${sglang.directory} has no readable srt/models/deepseek_v2.py`));
	if (source) findings.push(ok(`dump patch ${source.marked ? 'in' : 'not in'} ${source.path}`));
	if (source && runsBytecode && bytecode && bytecode.marked !== source.marked)
		findings.push(
			critical(
				`bytecode ${bytecode.path} is run instead of the source and ${bytecode.marked ? 'has' : 'lacks'} the patch: remove it`,
			),
		);
	else if (bytecode?.state === 'never checked')
		findings.push(warning(`bytecode ${bytecode.path} is never compared with its source: edits have no effect`));
	else if (bytecode?.state === 'outdated')
		findings.push(ok('bytecode is older than its source: it is compiled again at the next start'));
	if (tree && source && tree.sha256 !== source.sha256)
		findings.push(
			(tree.marked !== source.marked ? critical : warning)(
				`${tree.path} is not the copy that is imported${tree.marked && !source.marked ? ': the patch there does nothing' : ', and differs from it'}`,
			),
		);
	const switched = server?.env.SGLANG_HS_DUMP_DIR !== undefined;
	if (inRun && !switched) findings.push(warning('the patch is off: server.env has no SGLANG_HS_DUMP_DIR'));
	return {active: inRun && switched, findings};
}

function judgeModule(
	{server, dump}: Target,
	facts: HookFacts,
	ownSha256: string,
): {active: boolean; findings: Finding[]} {
	const findings: Finding[] = [];
	const {importable, placed} = facts.hook;
	const asked = flagValue(server?.args ?? [], '--forward-hooks')?.includes('relight_hs:') ?? false;
	const supported =
		facts.sglang === null ? null : (atLeast(facts.sglang.version, SINCE.forwardHooks) ?? facts.sglang.hooks);
	if (facts.sglang)
		findings.push(
			supported
				? ok('this sglang has --forward-hooks')
				: (asked ? critical : warning)(`this sglang has no --forward-hooks (${SINCE.forwardHooks} is the first)`),
		);
	const missing = asked ? critical : warning;
	if (importable) {
		findings.push(ok(`relight_hs is imported from ${importable.path}`));
		if (importable.sha256 !== ownSha256) findings.push(missing('that relight_hs is not the one this relight carries'));
	} else if (placed) {
		const differs = placed.sha256 === ownSha256 ? '' : ' and is not the one this relight carries';
		findings.push(missing(`${placed.path} is there${differs}, but PYTHONPATH of server.env does not lead to it`));
	} else findings.push(missing('relight_hs.py is not installed (relight hook install)'));
	if (!asked) findings.push(warning('server.args has no --forward-hooks for relight_hs (relight hook print-flags)'));
	const named = server?.env.RELIGHT_HS_DUMP_DIR ?? null;
	if (asked && dump && named !== dump.dir)
		findings.push(critical(`RELIGHT_HS_DUMP_DIR is ${named ?? 'not set'}, and the extractor reads ${dump.dir}`));
	const {status} = facts;
	if (status) {
		const error = status.lastError ? `; last error: ${status.lastError}` : '';
		findings.push(
			(status.exceptions > 0 ? warning : ok)(
				`last server with the hook (pid ${status.pid ?? 'unknown'}): ${status.written} written, ${status.refused} refused, ${status.exceptions} exceptions${error}`,
			),
		);
	}
	return {active: asked && supported === true && importable !== null, findings};
}
