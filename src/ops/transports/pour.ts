import type {Channel} from './transport.ts';

/** So many bytes of the input are gone, or are known to have been taken. */
export type Sent = (bytes: number) => void;

export type Sending = {
	/**
	 * The program takes its input in pieces of this size and says TAKEN for each: then few are under way at once. What is
	 * sent without waits in the buffers of a slow line, and looks behind it, until the route is taken for dead.
	 */
	readonly pieceBytes?: number | undefined;
	readonly onSent?: Sent | undefined;
};

/** ASCII ACK on standard output; in a script `printf '\006'`. */
export const TAKEN = 6;
const PIECE_BYTES = 262_144;
/** A piece that took longer than this to be taken had too many before it. */
const PROMPT_MS = 500;
const MOST_AHEAD = 64;

/** Input of a program, to its end. What breaks it off is told by the end of the channel. */
export function pour(channel: Channel, input: Buffer, {pieceBytes, onSent = () => {}}: Sending): void {
	if (pieceBytes === undefined) pourOn(channel.stdin, input, onSent);
	else pourPaced(channel, input, pieceBytes, onSent);
}

function pourOn(stdin: Channel['stdin'], input: Buffer, onSent: Sent): void {
	let sent = 0;
	function next(error?: Error | null): void {
		if (error) return;
		onSent(sent);
		if (sent >= input.length) return void stdin.end();
		const piece = input.subarray(sent, sent + PIECE_BYTES);
		sent += piece.length;
		stdin.write(piece, next);
	}
	next();
}

/** As many pieces ahead as are taken promptly: one on a slow line, many on a long one. */
function pourPaced({stdin, stdout}: Channel, input: Buffer, pieceBytes: number, onSent: Sent): void {
	const pieces = Math.ceil(input.length / pieceBytes);
	const sentAt: number[] = [];
	let taken = 0;
	let ahead = 2;
	function send(): void {
		while (sentAt.length < pieces && sentAt.length - taken < ahead) {
			const from = sentAt.length * pieceBytes;
			sentAt.push(performance.now());
			stdin.write(input.subarray(from, from + pieceBytes));
			if (sentAt.length === pieces) stdin.end();
		}
	}
	stdout.on('data', (chunk: Buffer) => {
		for (const byte of chunk) {
			if (byte !== TAKEN || taken >= sentAt.length) continue;
			const tookMs = performance.now() - (sentAt[taken++] ?? 0);
			ahead = tookMs < PROMPT_MS ? Math.min(MOST_AHEAD, ahead + 1) : Math.max(1, ahead - 1);
		}
		onSent(Math.min(input.length, taken * pieceBytes));
		send();
	});
	send();
	if (pieces === 0) stdin.end();
}
