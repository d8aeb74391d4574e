import {fresh} from '../facts.ts';
import type {Target} from '../target.ts';
import {type Operation, type Plan, refuse, type Situation, type Verdict} from './operation.ts';
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
		return stopPlan(target, running, here => {
			const now = fresh(here.facts.extraction)?.run;
			if (now === undefined) return {state: 'pending', words: 'waiting for a good look'};
			return now?.alive
				? {state: 'pending', words: `${now.state}, finishing`}
				: {state: 'met', words: `ended (${now?.state ?? 'gone'})`};
		});
	},
};

function stopPlan({name, server, extraction}: Target, running: Running, until: (here: Situation) => Verdict): Plan {
	const key = `${running.pid}@${running.startTicks}`;
	return {
		operation: 'stop-extractor',
		title: `stop the extractor (pid ${running.pid})`,
		tier: 1,
		confirmWord: name,
		targets: [
			{
				kind: 'process',
				identity: key,
				says: `pid ${running.pid}${extraction ? `  writes to ${extraction.output}` : ''}`,
			},
		],
		excluded: [],
		steps: [
			{
				kind: 'run',
				id: 'term',
				says: 'ask it to end',
				script: signalScript('TERM', running.bootId, [running], server?.python ?? null),
				limitMs: 10_000,
				signals: [key],
			},
			{
				kind: 'wait',
				id: 'ended',
				says: 'until it is gone',
				looks: ['extraction', 'processes'],
				limitMs: 120_000,
				until,
			},
		],
		warnings: [],
		inverse: null,
	};
}
