import {bad, good, type Outcome} from '../outcome.ts';
import type {Answer} from '../probes/probe.ts';
import type {Channel} from './transport.ts';

/** How long a pipe may stay open behind a program that has ended: a child of its own may hold it for ever. */
const DRAIN_MS = 1_000;

/**
 * One program from its start to its end: input in, status and both outputs out. An answer whatever the status; `timeout` when
 * the limit passes first (then it is let go), `killed`, or `lost` when no status came. Its last words are waited for until the
 * pipes close, which is not when it ends.
 */
export async function finish(channel: Channel, input: Buffer | null, limitMs: number): Promise<Outcome<Answer>> {
	const out: Buffer[] = [];
	const err: Buffer[] = [];
	const drained = Promise.all([collect(channel.stdout, out), collect(channel.stderr, err)]);
	channel.stdin.end(input ?? undefined);
	const end = await within(channel.ended, limitMs);
	if (!end) {
		channel.abandon();
		return bad({kind: 'timeout', afterMs: limitMs});
	}
	if (!(await within(drained, DRAIN_MS))) for (const pipe of [channel.stdout, channel.stderr]) pipe.destroy();
	if (end.kind === 'lost') return bad({kind: 'lost', detail: end.detail});
	if (end.kind === 'signal') return bad({kind: 'killed', signal: end.signal});
	const bytes = Buffer.concat(out);
	return good({status: end.code, stdout: bytes.toString(), stderr: Buffer.concat(err).toString(), bytes});
}

/** Resolves when nothing more can come. An SSH stream ends and is never said to be closed; a destroyed one only closes. */
function collect(stream: Channel['stdout'], into: Buffer[]): Promise<true> {
	return new Promise(resolve => {
		for (const last of ['end', 'close']) stream.once(last, () => resolve(true));
		stream.on('data', (chunk: Buffer) => into.push(chunk));
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
