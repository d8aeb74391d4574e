import {bad, good, type Outcome} from '../outcome.ts';
import type {Answer} from '../probes/probe.ts';
import {pour, type Sending, TAKEN} from './pour.ts';
import type {Channel} from './transport.ts';

/** How long a pipe may stay open behind a program that has ended: a child of its own may hold it for ever. */
const DRAIN_MS = 1_000;

/**
 * One program from its start to its end: input in, status and both outputs out. An answer whatever the status; `timeout` when
 * the limit passes first (then it is let go), `killed`, or `lost` when no status came. Its last words are waited for until the
 * pipes close, which is not when it ends.
 */
export async function finish(
	channel: Channel,
	input: Buffer | null,
	limitMs: number,
	sending: Sending = {},
): Promise<Outcome<Answer>> {
	const out: Buffer[] = [];
	const err: Buffer[] = [];
	channel.stdout.on('data', (chunk: Buffer) => out.push(chunk));
	channel.stderr.on('data', (chunk: Buffer) => err.push(chunk));
	const said = drained(channel);
	pour(channel, input ?? Buffer.alloc(0), sending);
	const end = await within(channel.ended, limitMs);
	if (!end) {
		channel.abandon();
		return bad({kind: 'timeout', afterMs: limitMs});
	}
	if (!(await within(said, DRAIN_MS))) for (const pipe of [channel.stdout, channel.stderr]) pipe.destroy();
	if (end.kind === 'lost') return bad({kind: 'lost', detail: end.detail});
	if (end.kind === 'signal') return bad({kind: 'killed', signal: end.signal});
	const all = Buffer.concat(out);
	const bytes = sending.pieceBytes === undefined ? all : Buffer.from(all.filter(byte => byte !== TAKEN));
	return good({status: end.code, stdout: bytes.toString(), stderr: Buffer.concat(err).toString(), bytes});
}

/** Resolves when nothing more can come from either pipe of a channel that is being read. */
export async function drained({stdout, stderr}: Channel): Promise<true> {
	await Promise.all([stdout, stderr].map(over));
	return true;
}

/** An SSH stream ends and is never said to be closed; a destroyed one only closes. */
function over(stream: Channel['stdout']): Promise<void> {
	return new Promise(resolve => {
		if (stream.readableEnded || stream.destroyed) return resolve();
		for (const last of ['end', 'close']) stream.once(last, () => resolve());
	});
}

/** null when the time is up first. */
export async function within<T>(wanted: Promise<T>, limitMs: number): Promise<T | null> {
	let timer: NodeJS.Timeout | undefined;
	const limit = new Promise<null>(resolve => {
		timer = setTimeout(() => resolve(null), Math.max(0, limitMs));
	});
	const first = await Promise.race([wanted, limit]);
	clearTimeout(timer);
	return first;
}
