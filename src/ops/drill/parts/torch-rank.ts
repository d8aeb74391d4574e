import {type ChildProcess, spawn} from 'node:child_process';
import {writeFileSync} from 'node:fs';
import {createInterface} from 'node:readline';
import type {MachinePython} from './machine-python.ts';
import type {PartBox} from './part-box.ts';
import program from './torch_model.py';

/** Four states [T, H] of a request, raw bf16: three auxiliary ones and the last one before the norm. */
export type PassRequest = {readonly rid: string; readonly ids: readonly number[]; readonly stream: readonly Buffer[]};

export type Registered = readonly (readonly [name: string, module: string | null])[];

/** A Python with a torch and the hook in it, fed by pipes. It ends with its input, and with the drill by its leash. */
export class TorchRank {
	readonly registered: Promise<{torch: string; hooks: Registered}>;
	private readonly child: ChildProcess;
	private readonly lines: AsyncIterableIterator<string>;
	private complaint = '';

	constructor({path}: MachinePython, {paths}: PartBox, ask: object) {
		const file = `${paths.run}/torch_model.py`;
		writeFileSync(file, program);
		const own = process.env.PYTHONPATH?.split(':').filter(Boolean) ?? [];
		const env = {...process.env, PYTHONPATH: [...own, `${paths.tree}/python`].join(':'), PYTHONDONTWRITEBYTECODE: '1'};
		this.child = spawn(path, ['-u', file], {env, stdio: ['pipe', 'pipe', 'pipe', 3]});
		this.child.on('error', error => {
			this.complaint += `${error.message}\n`;
		});
		this.child.stdin?.on('error', () => {});
		this.child.stderr?.on('data', piece => {
			this.complaint = (this.complaint + piece).slice(-8_192);
		});
		this.lines = createInterface({input: this.child.stdout ?? process.stdin})[Symbol.asyncIterator]();
		this.child.stdin?.write(`${JSON.stringify(ask)}\n`);
		this.registered = this.line() as Promise<{torch: string; hooks: Registered}>;
		// Whoever waits for it hears of it; until then it is nobody's.
		this.registered.catch(() => {});
	}

	/** One pass of the model over all of them. Rejects with what Python said when it has ended. */
	async pass(requests: readonly PassRequest[]): Promise<void> {
		const head = {requests: requests.map(({rid, ids}) => ({rid, ids}))};
		this.child.stdin?.write(`${JSON.stringify(head)}\n`);
		for (const {stream} of requests) for (const state of stream) this.child.stdin?.write(state);
		await this.line();
	}

	end(): void {
		this.child.stdin?.end();
		this.child.kill('SIGTERM');
	}

	private async line(): Promise<unknown> {
		const {value, done} = await this.lines.next();
		if (!done) return JSON.parse(value);
		await new Promise(resolve => (this.child.exitCode === null ? this.child.once('close', resolve) : resolve(null)));
		throw new Error(this.complaint.trim() || `the rank ended with ${this.child.exitCode ?? this.child.signalCode}`);
	}
}
