import {quote} from '../command.ts';
import {fresh} from '../facts.ts';
import type {FileConfig, Target} from '../target.ts';
import {type Operation, refuse, type Situation, type Verdict} from './operation.ts';

export const restoreFiles: Operation<Record<string, never>> = {
	id: 'restore-files',
	title: 'put the extraction script and other files back',
	tier: 1,
	defaultInput: () => ({}),

	plan(_, situation) {
		const {facts, target} = situation;
		const wanted = wantedFiles(target);
		if (wanted.length === 0) return refuse('no file to restore is configured (extraction.script or files)');
		const seen = fresh(facts.files);
		if (!seen) return refuse('the files have not been seen yet, or the last look failed');
		const state = (file: FileConfig) => seen.files.find(each => each.path === file.destination)?.state;
		const silent = wanted.filter(file => state(file) === 'no answer');
		if (silent.length > 0)
			return refuse(`no answer about ${silent.map(file => file.destination).join(', ')}: is its mount alive?`);
		const missing = wanted.filter(file => state(file) !== 'present');
		if (missing.length === 0) return refuse('all configured files are in place');
		return {
			operation: 'restore-files',
			title: `restore ${missing.map(file => nameOf(file.destination)).join(', ')}`,
			tier: 1,
			confirmWord: target.name,
			targets: missing.map(file => ({
				kind: 'path',
				identity: file.destination,
				says: `${file.destination} (${state(file) ?? 'not seen'}), from ${file.source}`,
			})),
			excluded: wanted
				.filter(file => !missing.includes(file))
				.map(file => ({kind: 'path', identity: file.destination, says: `${file.destination}: in place`})),
			steps: [
				...missing.map((file, index) => ({
					kind: 'send' as const,
					id: `send-${index + 1}`,
					says: `send ${nameOf(file.source)}, check it on the host, put it in place in one step`,
					source: file.source,
					sha256: file.sha256,
					script: receiveScript(file, situation.nowMs),
					limitMs: 60_000,
				})),
				{
					kind: 'wait',
					id: 'present',
					says: 'until a look shows each file with the right sum',
					looks: ['files', 'extraction'],
					limitMs: 30_000,
					until: here => present(missing, here),
				},
			],
			warnings: missing
				.filter(file => isVolatile(file.destination))
				.map(file => `${file.destination} does not survive a boot; a persistent place would`),
			inverse: null,
		};
	},
};

export const wantedFiles = ({extraction, files}: Target): readonly FileConfig[] => [
	...(extraction?.script ? [extraction.script] : []),
	...files,
];

const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

const isVolatile = (path: string) => /(^|\/)(tmp|run|dev\/shm)\//.test(path);

/** A file that is there but differs is kept beside the new one. The sum is printed for the sender to compare. */
function receiveScript({destination, mode}: FileConfig, nowMs: number): string {
	const at = destination.lastIndexOf('/');
	const folder = destination.slice(0, at) || '/';
	const temporary = quote(`${folder}/.${destination.slice(at + 1)}.relight.${nowMs}`);
	const kept = quote(`${destination}.before.${nowMs}`);
	return [
		`mkdir -p ${quote(folder)} && cat >${temporary} && chmod ${mode} ${temporary} && sync ${temporary} || exit 1`,
		`[ ! -e ${quote(destination)} ] || mv -f ${quote(destination)} ${kept} || exit 1`,
		`mv -f ${temporary} ${quote(destination)} && sha256sum <${quote(destination)}`,
	].join('\n');
}

function present(files: readonly FileConfig[], {facts}: Situation): Verdict {
	const seen = fresh(facts.files);
	if (!seen) return {state: 'pending', words: 'waiting for a good look at the files'};
	const not = files.filter(file => seen.files.find(each => each.path === file.destination)?.state !== 'present');
	if (not.length > 0)
		return {state: 'pending', words: `not yet seen whole: ${not.map(file => nameOf(file.destination)).join(', ')}`};
	return {state: 'met', words: `${files.length} file(s) in place, sums right`};
}
