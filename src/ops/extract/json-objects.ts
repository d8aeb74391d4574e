import {createHash} from 'node:crypto';
import {createReadStream} from 'node:fs';
import {Readable} from 'node:stream';
import {createGunzip} from 'node:zlib';

/** The dataset is not what it should be; says where. */
export class DatasetError extends Error {}

/** One object's text, and where it lies in the (unpacked) file. The bytes are valid until the next one is asked for. */
export type JsonObject = {readonly offset: number; readonly bytes: Buffer};

/** No sample of a training set is near this; beyond it the file is not what it is taken for. */
const MAX_RECORD_BYTES = 256 * 1024 * 1024;

const [OPEN_LIST, OPEN, CLOSE, CLOSE_LIST, QUOTE, ESCAPE, NEWLINE] = ['[', '{', '}', ']', '"', '\\', '\n'].map(char =>
	char.charCodeAt(0),
) as [number, number, number, number, number, number, number];

/** Inside an object only these change anything; all digits and commas are passed over with one look-up. */
const TELLING = new Uint8Array(256);
for (const byte of [OPEN_LIST, OPEN, CLOSE, CLOSE_LIST, QUOTE, NEWLINE]) TELLING[byte] = 1;
/** Between objects: blanks, commas, a byte order mark. */
const IDLE = new Uint8Array(256);
for (const byte of [9, 10, 13, 32, 0x2c, 0xef, 0xbb, 0xbf]) IDLE[byte] = 1;

/**
 * The objects of a JSON array or of one-object-per-line text, either also as `.gz`, one in memory at a time. `told` gets
 * the SHA-256 of the file as it lies on the disk, once all of it was read. Rejects with DatasetError or the read's error.
 */
export async function* readObjects(path: string, told?: (sha256: string) => void): AsyncGenerator<JsonObject> {
	const scanner = new Scanner(path);
	const sum = told ? createHash('sha256') : null;
	const file = createReadStream(path, {highWaterMark: 1024 * 1024});
	const raw = async function* (): AsyncGenerator<Buffer> {
		for await (const piece of file) {
			sum?.update(piece);
			yield piece;
		}
	};
	const bytes: AsyncIterable<Buffer> = path.endsWith('.gz') ? unpacked(raw()) : raw();
	for await (const chunk of bytes) yield* scanner.objects(chunk);
	scanner.end();
	if (sum) told?.(sum.digest('hex'));
}

function unpacked(packed: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
	const source = Readable.from(packed, {objectMode: false, highWaterMark: 1024 * 1024});
	const gunzip = createGunzip({chunkSize: 256 * 1024});
	source.on('error', error => gunzip.destroy(error));
	gunzip.on('close', () => source.destroy());
	return source.pipe(gunzip);
}

class Scanner {
	private kind: 'unknown' | 'array' | 'lines' | 'over' = 'unknown';
	private depth = 0;
	private inString = false;
	private escaped = false;
	private kept: Buffer[] = [];
	private keptBytes = 0;
	/** Where this chunk starts in the file. */
	private base = 0;

	constructor(private readonly path: string) {}

	*objects(chunk: Buffer): Generator<JsonObject> {
		let start = this.depth > 0 ? 0 : -1;
		for (let at = 0; at < chunk.length; at++) {
			const byte = chunk[at] ?? 0;
			if (this.inString) this.string(byte);
			else if (this.depth > 0) {
				if (TELLING[byte] === 0) continue;
				if (byte === QUOTE) this.inString = true;
				else if (byte === OPEN || byte === OPEN_LIST) this.depth++;
				else if (byte === NEWLINE) {
					if (this.kind === 'lines') this.wrong('an object that does not end on its line');
				} else if (--this.depth === 0) {
					const tail = chunk.subarray(start, at + 1);
					yield {
						offset: this.base + at + 1 - this.keptBytes - tail.length,
						bytes: this.keptBytes > 0 ? Buffer.concat([...this.kept, tail]) : tail,
					};
					this.kept = [];
					this.keptBytes = 0;
					start = -1;
				}
			} else if (IDLE[byte] === 0) {
				this.between(byte);
				if (this.depth === 1) start = at;
			}
		}
		if (start >= 0) {
			this.kept.push(Buffer.from(chunk.subarray(start)));
			this.keptBytes += chunk.length - start;
			if (this.keptBytes > MAX_RECORD_BYTES) this.wrong(`a record over ${MAX_RECORD_BYTES} bytes`);
		}
		this.base += chunk.length;
	}

	end(): void {
		if (this.depth > 0 || this.kind === 'array') this.wrong('the file ends inside the data');
	}

	private string(byte: number): void {
		if (this.escaped) this.escaped = false;
		else if (byte === ESCAPE) this.escaped = true;
		else if (byte === QUOTE) this.inString = false;
	}

	private between(byte: number): void {
		if (this.kind === 'over') this.wrong('something behind the end of the list');
		if (byte === OPEN) {
			if (this.kind === 'unknown') this.kind = 'lines';
			this.depth = 1;
		} else if (byte === OPEN_LIST && this.kind === 'unknown') this.kind = 'array';
		else if (byte === CLOSE_LIST && this.kind === 'array') this.kind = 'over';
		else if (byte === CLOSE || byte === CLOSE_LIST) this.wrong('a closing bracket where none belongs');
		else this.wrong('neither a JSON array of objects nor one object per line');
	}

	private wrong(words: string): never {
		throw new DatasetError(`${this.path}: ${words}`);
	}
}
