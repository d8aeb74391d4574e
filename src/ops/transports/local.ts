import type {Command} from '../command.ts';
import {bad, good} from '../outcome.ts';
import type {Channel, ChannelEnd, Environment, Transport} from './transport.ts';

/**
 * Programs on this machine, each in a process group of its own. The start itself can freeze the event loop when the
 * working directory, the program or PATH lies on a dead mount, so all three are fixed: `/`, `/usr/bin/env`, none.
 */
export function localTransport(environment: Environment): Transport {
	return {
		label: 'local',
		environment,
		async open(command: Command) {
			const {execa} = await import('execa');
			const child = execa('/usr/bin/env', [`PATH=${environment.path}`, ...command], {
				cwd: '/',
				env: {},
				extendEnv: false,
				buffer: false,
				detached: true,
				reject: false,
				stdin: 'pipe',
				stdout: 'pipe',
				stderr: 'pipe',
			});
			const {stdin, stdout, stderr, pid} = child;
			if (pid === undefined) {
				const {message} = (await child) as unknown as Error;
				return bad({kind: 'unreachable', phase: 'start', detail: message});
			}
			const ended = new Promise<ChannelEnd>(resolve => {
				child.once('exit', (code, signal) => {
					resolve(signal ? {kind: 'signal', signal} : {kind: 'exit', code: code ?? -1});
				});
			});
			for (const stream of [stdin, stdout, stderr]) stream.on('error', () => {});
			const channel: Channel = {
				stdin,
				stdout,
				stderr,
				ended,
				abandon() {
					killGroup(pid);
					for (const stream of [stdin, stdout, stderr]) stream.destroy();
					child.unref();
				},
			};
			return good(channel);
		},
		close() {},
	};
}

/** Our own child's group. Gone already is fine; a member in D stays and is not waited for. */
function killGroup(pid: number): void {
	try {
		process.kill(-pid, 'SIGKILL');
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
	}
}
