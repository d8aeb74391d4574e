import {fresh} from '../facts.ts';
import type {HookFacts, SourceFile} from '../hook/look.ts';
import {HOOK_FILE, HOOK_SHA256} from '../hook/own.ts';
import {type HookVerdict, judgeHook, launchFindings} from '../hook/verdict.ts';
import type {FilesFacts} from '../probes/files.ts';
import type {Target} from '../target.ts';
import type {Situation} from './operation.ts';
import {wantedFiles} from './restore-files.ts';

/** What would dump hidden states in a launch: judged, or why it cannot be told. null: nothing is to be dumped here. */
export type DumpWay =
	| {readonly known: true; readonly verdict: HookVerdict}
	| {readonly known: false; readonly why: string}
	| null;

/** `restored`: as it will be once the files that are missing have been put back. */
export function dumpWay({target, facts}: Pick<Situation, 'target' | 'facts'>, restored = false): DumpWay {
	if (!target.server || !target.dump) return null;
	const files = fresh(facts.files);
	if (!files) return {known: false, why: 'the files it needs have not been seen yet, or the last look failed'};
	const {hook} = files;
	if (!hook) return {known: false, why: 'its Python was not asked'};
	if (hook.state === 'unknown') return {known: false, why: hook.why};
	const seen = restored ? asRestored(target, files, hook.facts) : hook.facts;
	return {known: true, verdict: judgeHook(target, seen, HOOK_SHA256)};
}

/** Why a launch would not dump what the extractor reads, in words. Not to know it is a reason, too. */
export function dumpObjections(situation: Situation, restored = false): string[] {
	const way = dumpWay(situation, restored);
	if (way === null) return [];
	if (way.known) return launchFindings(way.verdict).against;
	return [
		`what would dump hidden states is not known: ${way.why} (mend that, or server.python in relight.yaml, and look again)`,
	];
}

export function dumpWarnings(situation: Situation, restored = false): string[] {
	const way = dumpWay(situation, restored);
	return way?.known ? launchFindings(way.verdict).warnings : [];
}

const PATCHED = '/srt/models/deepseek_v2.py';

/** A file that is to be restored counts as there: the hook where PYTHONPATH leads to it, the patch where it is imported. */
function asRestored(target: Target, {files}: FilesFacts, facts: HookFacts): HookFacts {
	let {hook, sglang, tree} = facts;
	for (const {destination, sha256} of wantedFiles(target)) {
		if (files.find(({path}) => path === destination)?.state === 'present') continue;
		const file: SourceFile = {path: destination, sha256: sha256 ?? HOOK_SHA256, marked: false};
		const [directory, name] = split(destination);
		if (name === HOOK_FILE) {
			const leads = target.server?.env.PYTHONPATH?.split(':').includes(directory);
			hook = {importable: leads ? file : hook.importable, placed: file};
		}
		if (!destination.endsWith(PATCHED)) continue;
		const patched = {...file, marked: true};
		if (destination === tree?.path) tree = patched;
		if (sglang && destination === sglang.directory + PATCHED) sglang = {...sglang, source: patched, bytecode: null};
	}
	return {...facts, hook, sglang, tree};
}

function split(path: string): [directory: string, name: string] {
	const at = path.lastIndexOf('/');
	return [path.slice(0, at), path.slice(at + 1)];
}
