import {fresh} from '../facts.ts';
import {type Operation, type Plan, type Refusal, refuse, type Situation, type Verdict} from './operation.ts';
import {signalScript} from './signal-script.ts';

type Running = {readonly pid: number; readonly startTicks: number; readonly bootId: string};

/** Graceful: the sample in flight is finished and committed. */
export const stopExtractor: Operation<Record<string, never>> = {
	id: 'stop-extractor',
	title: 'stop the extractor after the sample in flight',
	tier: 1,
	defaultInput: () => ({}),
	plan(_, {facts, target}) {
		const run = fresh(facts.extraction)?.run;
		const bootId = fresh(facts.processes)?.bootId;
		if (!run?.alive || run.pid === null || run.startTicks === null || !bootId)
			return refuse('no extraction is known to run');
		const running = {pid: run.pid, startTicks: run.startTicks, bootId};
		return stopPlan('stop-extractor', 'the extractor', target.name, running, 1, here => {
			const now = fresh(here.facts.extraction)?.run;
			if (now === undefined) return {state: 'pending', words: 'waiting for a good look'};
			return now?.alive
				? {state: 'pending', words: `${now.state}, finishing`}
				: {state: 'met', words: `ended (${now?.state ?? 'gone'})`};
		});
	},
};

export const stopServer: Operation<Record<string, never>> = {
	id: 'stop-server',
	title: 'stop the launched server',
	tier: 2,
	defaultInput: () => ({}),
	plan(_, {facts, target}) {
		const server = fresh(facts.server);
		if (server?.process !== 'alive' || !server.record) return refuse('no server launched from here is known to run');
		if (fresh(facts.extraction)?.run?.alive) return refuse('an extraction is running on it: stop that first');
		return stopPlan(
			'stop-server',
			`the server on port ${server.record.port}`,
			target.server?.name ?? target.name,
			server.record,
			2,
			here => {
				const now = fresh(here.facts.server);
				if (!now) return {state: 'pending', words: 'waiting for a good look at the server'};
				return now.process === 'alive' ? {state: 'pending', words: 'draining'} : {state: 'met', words: 'gone'};
			},
		);
	},
};

function stopPlan(
	id: 'stop-extractor' | 'stop-server',
	what: string,
	confirmWord: string,
	running: Running,
	tier: 1 | 2,
	until: (here: Situation) => Verdict,
): Plan | Refusal {
	const key = `${running.pid}@${running.startTicks}`;
	return {
		operation: id,
		title: `stop ${what} (pid ${running.pid})`,
		tier,
		confirmWord,
		targets: [{kind: 'process', identity: key, says: `pid ${running.pid}`}],
		excluded: [],
		steps: [
			{
				kind: 'run',
				id: 'term',
				says: 'ask it to end',
				script: signalScript('TERM', running.bootId, [running]),
				limitMs: 10_000,
				signals: [key],
			},
			{
				kind: 'wait',
				id: 'ended',
				says: 'until it is gone',
				looks: ['extraction', 'server', 'processes'],
				limitMs: 120_000,
				until,
			},
		],
		warnings: [],
		inverse: null,
	};
}
