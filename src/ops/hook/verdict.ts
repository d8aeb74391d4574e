import {flagValue} from '../server/protections.ts';
import type {Target} from '../target.ts';
import type {HookFacts} from './look.ts';
import {atLeast, SINCE} from './sglang-version.ts';

export type Finding = {
	readonly level: 'ok' | 'warning' | 'critical';
	/** `launch`: it is about both ways, or about neither. */
	readonly about: 'launch' | 'patch' | 'hook';
	readonly words: string;
};

export type HookVerdict = {
	/** What would dump hidden states if the server were launched now. */
	readonly way: 'forward hook' | 'source patch' | 'both' | 'none';
	readonly findings: readonly Finding[];
};

const finding =
	(level: Finding['level']) =>
	(about: Finding['about'], words: string): Finding => ({level, about, words});
const ok = finding('ok');
const warning = finding('warning');
const critical = finding('critical');

/** What the facts mean. `ownSha256` is the hook that this relight carries. Pure. */
export function judgeHook(target: Target, facts: HookFacts, ownSha256: string): HookVerdict {
	const patch = judgePatch(target, facts);
	const hook = judgeModule(target, facts, ownSha256);
	const way = hook.active ? (patch.active ? 'both' : 'forward hook') : patch.active ? 'source patch' : 'none';
	const findings = [...judgePackage(target, facts), ...patch.findings, ...hook.findings];
	if (way === 'none')
		findings.push(critical('launch', 'nothing would dump hidden states: neither patch nor hook is active'));
	if (way === 'both')
		findings.push(warning('launch', 'patch and hook are both active: each request would be dumped twice'));
	return {way, findings};
}

function judgePackage({server}: Target, {sglang, python}: HookFacts): Finding[] {
	if (!sglang) return [critical('launch', `${server?.python ?? 'python'} (${python}) finds no sglang`)];
	const version = sglang.version ?? 'of unknown version';
	return [ok('launch', `sglang ${version} is imported from ${sglang.directory}`)];
}

function judgePatch({server, dump}: Target, {sglang, tree}: HookFacts): {active: boolean; findings: Finding[]} {
	const findings: Finding[] = [];
	const source = sglang?.source ?? null;
	const bytecode = sglang?.bytecode ?? null;
	const runsBytecode = bytecode?.state === 'fits' || bytecode?.state === 'never checked';
	const inRun = runsBytecode && bytecode ? bytecode.marked : (source?.marked ?? false);
	if (sglang && !source)
		findings.push(warning('patch', `${sglang.directory} has no readable srt/models/deepseek_v2.py`));
	if (source) findings.push(ok('patch', `dump patch ${source.marked ? 'in' : 'not in'} ${source.path}`));
	if (source && runsBytecode && bytecode && bytecode.marked !== source.marked)
		findings.push(
			critical(
				'patch',
				`bytecode ${bytecode.path} is run instead of the source and ${bytecode.marked ? 'has' : 'lacks'} the patch: remove it`,
			),
		);
	else if (bytecode?.state === 'never checked')
		findings.push(
			warning('patch', `bytecode ${bytecode.path} is never compared with its source: edits have no effect`),
		);
	else if (bytecode?.state === 'outdated')
		findings.push(ok('patch', 'bytecode is older than its source: it is compiled again at the next start'));
	if (tree && source && tree.sha256 !== source.sha256)
		findings.push(
			(tree.marked !== source.marked ? critical : warning)(
				'patch',
				`${tree.path} is not the copy that is imported${tree.marked && !source.marked ? ': the patch there does nothing' : ', and differs from it'}`,
			),
		);
	const named = server?.env.SGLANG_HS_DUMP_DIR;
	const switched = named !== undefined;
	if (inRun && switched && dump && named !== dump.dir)
		findings.push(critical('patch', `SGLANG_HS_DUMP_DIR is ${named}, and the extractor reads ${dump.dir}`));
	if (inRun && !switched) findings.push(warning('patch', 'the patch is off: server.env has no SGLANG_HS_DUMP_DIR'));
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
				? ok('hook', 'this sglang has --forward-hooks')
				: (asked ? critical : warning)(
						'hook',
						`this sglang has no --forward-hooks (${SINCE.forwardHooks} is the first)`,
					),
		);
	const missing = asked ? critical : warning;
	if (importable) {
		findings.push(ok('hook', `relight_hs is imported from ${importable.path}`));
		if (importable.sha256 !== ownSha256)
			findings.push(missing('hook', 'that relight_hs is not the one this relight carries'));
	} else if (placed) {
		const differs = placed.sha256 === ownSha256 ? '' : ' and is not the one this relight carries';
		findings.push(
			missing('hook', `${placed.path} is there${differs}, but PYTHONPATH of server.env does not lead to it`),
		);
	} else findings.push(missing('hook', 'relight_hs.py is not installed (relight hook install)'));
	if (!asked)
		findings.push(warning('hook', 'server.args has no --forward-hooks for relight_hs (relight hook print-flags)'));
	const named = server?.env.RELIGHT_HS_DUMP_DIR ?? null;
	if (asked && dump && named !== dump.dir)
		findings.push(
			critical('hook', `RELIGHT_HS_DUMP_DIR is ${named ?? 'not set'}, and the extractor reads ${dump.dir}`),
		);
	const {status} = facts;
	if (status) {
		const error = status.lastError ? `; last error: ${status.lastError}` : '';
		findings.push(
			(status.exceptions > 0 ? warning : ok)(
				'hook',
				`last server with the hook (pid ${status.pid ?? 'unknown'}): ${status.written} written, ${status.refused} refused, ${status.exceptions} exceptions${error}`,
			),
		);
	}
	return {active: asked && supported === true && importable !== null, findings};
}

/**
 * What a launch is held back by, and what it should know. With the hook at work an idle patch is no concern of its own; with
 * the patch at work the hook is one only if the launch asks for it.
 */
export function launchFindings({way, findings}: HookVerdict): {against: string[]; warnings: string[]} {
	const words = (level: Finding['level'], idle: Finding['about'] | null) =>
		findings.filter(each => each.level === level && each.about !== idle).map(each => each.words);
	return {
		against: words('critical', way === 'forward hook' ? 'patch' : null),
		warnings: words('warning', way === 'forward hook' ? 'patch' : way === 'source patch' ? 'hook' : null),
	};
}
