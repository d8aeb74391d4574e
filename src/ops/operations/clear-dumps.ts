import {quote, show} from '../command.ts';
import {fresh} from '../facts.ts';
import {type Operation, refuse, type Situation, type Verdict} from './operation.ts';

export const clearDumps: Operation<Record<string, never>> = {
	id: 'clear-dumps',
	title: 'move stale dumps aside',
	tier: 2,
	defaultInput: () => ({}),

	plan(_, {facts, target, nowMs}) {
		if (!target.dump) return refuse('no dump directory is configured (dump.dir)');
		const {dir} = target.dump;
		const extraction = fresh(facts.extraction);
		const server = fresh(facts.server);
		if (!extraction || extraction.dumps === null)
			return refuse('the dump directory has not been seen, or the last look failed');
		if (extraction.dumps.length === 0) return refuse('the dump directory holds no request');
		if (target.server && !server)
			return refuse('whether a server is running is not known: its dumps must not be moved');
		if (extraction.run?.alive && extraction.run.state === 'extracting')
			return refuse('an extraction is running: its dumps are not stale');
		const bornAt = server?.process === 'alive' ? (server.record?.at ?? null) : null;
		const stale = extraction.dumps.filter(dump => bornAt === null || dump.modifiedAt < bornAt);
		const live = extraction.dumps.filter(dump => !stale.includes(dump));
		if (stale.length === 0) return refuse(`all ${live.length} request(s) are of the running server`);
		const aside = `${dir}/.quarantine/${nowMs}`;
		const names = stale.map(dump => dump.name);
		return {
			operation: 'clear-dumps',
			title: `move ${stale.length} stale request(s) of dead servers aside`,
			tier: 2,
			confirmWord: dir.split('/').filter(Boolean).pop() ?? dir,
			targets: stale.map(dump => ({
				kind: 'path',
				identity: `${dir}/${dump.name}`,
				says: `${dump.name}  ${new Date(dump.modifiedAt).toISOString()}`,
			})),
			excluded: live.map(dump => ({
				kind: 'path',
				identity: `${dir}/${dump.name}`,
				says: `${dump.name}: younger than the running server`,
			})),
			steps: [
				{
					kind: 'run',
					id: 'move',
					says: `move them to ${aside}, with a note; nothing is deleted`,
					script: [
						`mkdir -p ${quote(aside)} && cd ${quote(dir)} || exit 1`,
						`printf 'stale requests of dead servers, moved here by relight\\n' >${quote(`${aside}/NOTE`)}`,
						`for d in ${show(names)}; do [ ! -e "$d" ] || mv -- "$d" ${quote(`${aside}/`)} || exit 1; done`,
					].join('\n'),
					limitMs: 60_000,
				},
				{
					kind: 'wait',
					id: 'empty',
					says: 'until the directory holds only live requests',
					looks: ['extraction'],
					limitMs: 20_000,
					until: here => moved(new Set(names), here),
				},
			],
			warnings: [],
			inverse: `mv ${quote(aside)}/req_* ${quote(dir)}/`,
		};
	},
};

function moved(names: ReadonlySet<string>, {facts}: Situation): Verdict {
	const dumps = fresh(facts.extraction)?.dumps;
	if (!dumps) return {state: 'pending', words: 'waiting for a good look at the dump directory'};
	const left = dumps.filter(dump => names.has(dump.name)).length;
	return left > 0 ? {state: 'pending', words: `${left} still there`} : {state: 'met', words: 'no stale request left'};
}
