import {spawn} from 'node:child_process';
import {type Readable, Transform} from 'node:stream';
import type {ServerChannel, Session} from 'ssh2';
import type {Received} from './received.ts';

/** Where commands of one route run. */
export type SessionPlace = {
	readonly env: Readonly<Record<string, string>>;
	readonly cwd: string;
	/** Read end of the leash. */
	readonly leash: number;
	readonly received: Received;
};

/** One command that runs for a client. */
export type Shell = {
	/** Stops carrying bytes, as a frozen host would. */
	pause(): void;
	resume(): void;
	end(): void;
};

/** Serves the requests of one session: exec, signals, environment ignored; no terminal, no shell, no subsystem. */
export function serveSession(session: Session, place: SessionPlace, shells: Set<Shell>, closed: () => void): void {
	let signal: ((name: string) => void) | null = null;
	session.on('env', accept => accept?.());
	session.on('pty', (_accept, reject) => reject?.());
	session.on('shell', (_accept, reject) => reject?.());
	session.on('subsystem', (_accept, reject) => reject?.());
	session.on('signal', (accept, _reject, {name}) => {
		accept?.();
		signal?.(name);
	});
	session.on('exec', (accept, _reject, {command}) => {
		signal = run(accept(), command, place, shells);
	});
	session.on('close', closed);
}

function run(stream: ServerChannel, command: string, place: SessionPlace, shells: Set<Shell>): (name: string) => void {
	const child = spawn('/bin/sh', ['-c', command], {
		detached: true,
		cwd: place.cwd,
		env: {...place.env},
		stdio: ['pipe', 'pipe', 'pipe', place.leash],
	});
	const {stdin, stdout, stderr} = child;
	if (!stdin || !stdout || !stderr) throw new Error('a shell without pipes');
	child.unref();
	for (const pipe of [stdin, stdout, stderr, stream]) pipe.on('error', () => {});
	place.received.command(command);
	const hear = place.received.listen();
	let frozen = false;
	let goOn: (() => void) | null = null;
	const gate = new Transform({
		transform(piece, _encoding, done) {
			hear(piece);
			// What it heard may have frozen it: then it never arrives.
			if (frozen) goOn = () => done(null, piece);
			else done(null, piece);
		},
	});
	stream.pipe(gate).pipe(stdin);
	stdout.pipe(stream, {end: false});
	stderr.pipe(stream.stderr, {end: false});

	const ended = (pipe: Readable): Promise<void> => new Promise(resolve => pipe.once('close', () => resolve()));
	const exit = new Promise<{code: number | null; signal: NodeJS.Signals | null}>(resolve => {
		child.once('error', () => resolve({code: 127, signal: null}));
		child.once('exit', (code, signal) => resolve({code, signal}));
	});
	const shell: Shell = {
		pause() {
			for (const pipe of [stdout, stderr]) pipe.unpipe();
			for (const pipe of [stdout, stderr]) pipe.pause();
			frozen = true;
		},
		resume() {
			frozen = false;
			goOn?.();
			goOn = null;
			stdout.pipe(stream, {end: false});
			stderr.pipe(stream.stderr, {end: false});
		},
		end() {
			for (const pipe of [stdin, stdout, stderr]) pipe.destroy();
		},
	};
	shells.add(shell);
	void Promise.all([exit, ended(stdout), ended(stderr)]).then(([{code, signal}]) => {
		shells.delete(shell);
		if (stream.destroyed) return;
		if (signal) stream.exit(signal.replace(/^SIG/, ''), false, '');
		else stream.exit(code ?? 0);
		stream.end();
	});
	// Closing the channel kills nobody, as with sshd: the command ends at its next write.
	stream.on('close', () => shell.end());
	return name => {
		try {
			if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, `SIG${name}`);
		} catch {
			// It ended before the signal came.
		}
	};
}
