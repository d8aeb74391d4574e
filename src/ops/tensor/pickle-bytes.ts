import {DamagedFile} from './damage.ts';

/** Reads the arguments of opcodes, one after the other. Throws DamagedFile where the text ends early. */
export class PickleBytes {
	at = 0;

	constructor(private readonly text: Buffer) {}

	get left(): number {
		return this.text.length - this.at;
	}

	byte(): number {
		const value = this.text[this.at];
		if (value === undefined) throw early();
		this.at++;
		return value;
	}

	bytes(count: number): Buffer {
		const from = this.step(count);
		return this.text.subarray(from, from + count);
	}

	/** Where the next `count` bytes start; what follows is behind them. */
	private step(count: number): number {
		const from = this.at;
		if (count > this.text.length - from) throw early();
		this.at = from + count;
		return from;
	}

	word(count: number): string {
		const from = this.step(count);
		return this.text.toString('utf8', from, from + count);
	}

	uint16(): number {
		return this.text.readUInt16LE(this.step(2));
	}

	int32(): number {
		return this.text.readInt32LE(this.step(4));
	}

	uint32(): number {
		return this.text.readUInt32LE(this.step(4));
	}

	double(): number {
		return this.text.readDoubleBE(this.step(8));
	}

	/** Signed, at most 64 bits in the file and 53 in value. */
	long(): number {
		const bytes = this.bytes(this.byte());
		if (bytes.length > 8) throw new DamagedFile('pickle holds a number over 64 bits', 'pickle');
		let value = 0n;
		for (let at = bytes.length - 1; at >= 0; at--) value = (value << 8n) | BigInt(bytes[at] ?? 0);
		const signed = Number(BigInt.asIntN(Math.max(bytes.length, 1) * 8, value));
		if (!Number.isSafeInteger(signed)) throw new DamagedFile('pickle holds a number over 53 bits', 'pickle');
		return signed;
	}

	line(): string {
		const end = this.text.indexOf(0x0a, this.at);
		if (end < 0) throw early();
		const line = this.text.toString('utf8', this.at, end);
		this.at = end + 1;
		return line;
	}
}

const early = (): DamagedFile => new DamagedFile('pickle ends early', 'pickle');
