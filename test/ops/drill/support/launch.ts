import {readFileSync} from 'node:fs';
import {show} from '../../../../src/ops/command.ts';
import type {Box} from '../../../../src/ops/drill/box.ts';
import {inBox, until} from './shell.ts';

/** The configured server as a transient unit; its log. Rejects when it cannot be started. */
export async function launchServer(box: Box, unit: string): Promise<string> {
	const {python, model, args, port, env, log} = box.target.server ?? Object.assign(Error('no server'));
	const file = `${log}/${unit}.log`;
	const settings = Object.entries(env).map(([key, value]) => `--setenv=${key}=${value}`);
	const argv = [python, '-m', 'sglang.launch_server', '--model-path', model, ...args, '--port', String(port)];
	const words = ['systemd-run', `--unit=${unit}`, ...outputs(file), ...settings, '--', ...argv];
	await started(box, words);
	return file;
}

export async function startRun(box: Box, unit: string): Promise<void> {
	const {script, log} = box.target.extraction ?? Object.assign(Error('no extraction'));
	const argv = [box.target.server?.python ?? '', script?.destination ?? '', ...(script?.argv ?? [])];
	await started(box, ['systemd-run', `--unit=${unit}`, ...outputs(log), '--', ...argv]);
}

const outputs = (file: string) => ['-p', `StandardOutput=append:${file}`, '-p', `StandardError=append:${file}`];

async function started(box: Box, words: readonly string[]): Promise<void> {
	const {code, stderr} = await inBox(box, show(words));
	if (code !== 0) throw new Error(stderr);
}

export const read = (file: string): string => {
	try {
		return readFileSync(file, 'utf8');
	} catch {
		return '';
	}
};

export type Progress = {
	state: string;
	extracted: number;
	skipped: number;
	errors: number;
	pid: number;
	bootId: string;
};

export const progressOf = ({target}: Box): Progress =>
	JSON.parse(read(target.extraction?.progress ?? '') || '{"state":"none"}');

/** Memory comes back a while after whoever held it is gone. */
export async function cardsIdle(box: Box): Promise<void> {
	const used = () => inBox(box, 'nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits');
	await until(
		async () => (await used()).stdout,
		text => text.split('\n').every(each => Number(each) < 100),
	);
}
