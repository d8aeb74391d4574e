import {callOf, type Pickled, storageOf} from './pickled.ts';
import {DamagedFile} from './zip-reader.ts';

/**
 * A reader for pickles that torch makes of trees of tensors. Nothing is ever called or made from a name: known names
 * become inert marks, everything else is refused. Also refused: damage, other opcodes, anything out of bounds.
 */
const MAX_BYTES = 16 * 1024 * 1024;
const MAX_OPERATIONS = 2_000_000;
const MARK = Symbol('mark');

export function unpickle(text: Buffer): Pickled {
	if (text.length > MAX_BYTES) throw new DamagedFile('pickle over 16 MiB');
	return new Machine(text).run();
}

class Machine {
	private readonly stack: (Pickled | typeof MARK)[] = [];
	private readonly memo = new Map<number, Pickled>();
	private at = 0;

	constructor(private readonly text: Buffer) {}

	run(): Pickled {
		for (let count = 0; count < MAX_OPERATIONS; count++) {
			const code = this.byte();
			if (code === 0x2e) return this.finish();
			this.step(code);
		}
		throw new DamagedFile('pickle has too many operations');
	}

	private finish(): Pickled {
		const value = this.pop();
		if (this.stack.length > 0) throw new DamagedFile('pickle leaves values behind');
		if (this.at !== this.text.length) throw new DamagedFile('bytes after the end of the pickle');
		return value;
	}

	private step(code: number): void {
		const value = this.produce(code);
		if (value !== undefined) this.stack.push(value);
		else this.act(code);
	}

	/** What an opcode puts on the stack; undefined for one that works on what is there. */
	private produce(code: number): Pickled | typeof MARK | undefined {
		switch (String.fromCharCode(code)) {
			case '}':
				return {kind: 'dict', entries: new Map()};
			case ']':
				return {kind: 'list', items: []};
			case ')':
				return {kind: 'tuple', items: []};
			case '(':
				return MARK;
			case 't':
				return {kind: 'tuple', items: this.toMark()};
			case '\x85':
			case '\x86':
			case '\x87':
				return {kind: 'tuple', items: this.popMany(code - 0x84)};
			case 'X':
				return this.bytes(this.uint32()).toString('utf8');
			case 'J':
				return this.bytes(4).readInt32LE(0);
			case 'K':
				return this.byte();
			case 'M':
				return this.bytes(2).readUInt16LE(0);
			case 'G':
				return this.bytes(8).readDoubleBE(0);
			case '\x8a':
				return this.long();
			case 'N':
				return null;
			case '\x88':
			case '\x89':
				return code === 0x88;
			case 'c':
				return {kind: 'global', name: `${this.line()} ${this.line()}`};
			case 'h':
				return this.recall(this.byte());
			case 'j':
				return this.recall(this.uint32());
			case 'Q':
				return storageOf(this.pop());
			case 'R': {
				const [call = null, argument = null] = this.popMany(2);
				return callOf(call, argument);
			}
			default:
				return undefined;
		}
	}

	private act(code: number): void {
		switch (String.fromCharCode(code)) {
			case '\x80':
				if (this.byte() !== 2) throw new DamagedFile('pickle protocol other than 2');
				break;
			case 'q':
				this.memo.set(this.byte(), this.top());
				break;
			case 'r':
				this.memo.set(this.uint32(), this.top());
				break;
			case 'a':
				this.append([this.pop()]);
				break;
			case 'e':
				this.append(this.toMark());
				break;
			case 's':
				this.set(this.popMany(2));
				break;
			case 'u':
				this.set(this.toMark());
				break;
			case 'b':
				// State of an OrderedDict (`_metadata`): nothing that a tensor needs.
				this.pop();
				this.top();
				break;
			default:
				throw new DamagedFile(`pickle opcode 0x${code.toString(16)} is refused`);
		}
	}

	private append(items: Pickled[]): void {
		const list = this.top();
		if (list === null || typeof list !== 'object' || list.kind !== 'list')
			throw new DamagedFile('pickle appends to no list');
		for (const item of items) list.items.push(item);
	}

	private set(items: Pickled[]): void {
		const dict = this.top();
		if (dict === null || typeof dict !== 'object' || dict.kind !== 'dict' || items.length % 2) {
			throw new DamagedFile('pickle sets items of no dict');
		}
		for (let at = 0; at < items.length; at += 2) dict.entries.set(items[at] ?? null, items[at + 1] ?? null);
	}

	private byte(): number {
		const value = this.text[this.at++];
		if (value === undefined) throw new DamagedFile('pickle ends early');
		return value;
	}

	private bytes(count: number): Buffer {
		if (this.at + count > this.text.length) throw new DamagedFile('pickle ends early');
		this.at += count;
		return this.text.subarray(this.at - count, this.at);
	}

	private uint32(): number {
		return this.bytes(4).readUInt32LE(0);
	}

	private long(): number {
		const bytes = this.bytes(this.byte());
		if (bytes.length > 8) throw new DamagedFile('pickle holds a number over 64 bits');
		let value = 0n;
		for (const byte of [...bytes].reverse()) value = (value << 8n) | BigInt(byte);
		const signed = Number(BigInt.asIntN(Math.max(bytes.length, 1) * 8, value));
		if (!Number.isSafeInteger(signed)) throw new DamagedFile('pickle holds a number over 53 bits');
		return signed;
	}

	private line(): string {
		const end = this.text.indexOf(0x0a, this.at);
		if (end < 0) throw new DamagedFile('pickle ends early');
		const line = this.text.toString('utf8', this.at, end);
		this.at = end + 1;
		return line;
	}

	private pop(): Pickled {
		const value = this.stack.pop();
		if (value === undefined || value === MARK) throw new DamagedFile('pickle takes from an empty stack');
		return value;
	}

	private top(): Pickled {
		const value = this.stack.at(-1);
		if (value === undefined || value === MARK) throw new DamagedFile('pickle looks at an empty stack');
		return value;
	}

	private popMany(count: number): Pickled[] {
		const items: Pickled[] = [];
		for (let left = count; left > 0; left--) items.unshift(this.pop());
		return items;
	}

	private toMark(): Pickled[] {
		const from = this.stack.lastIndexOf(MARK);
		if (from < 0) throw new DamagedFile('pickle has no mark');
		const items: Pickled[] = [];
		for (const value of this.stack.splice(from).slice(1)) if (value !== MARK) items.push(value);
		return items;
	}

	private recall(at: number): Pickled {
		const value = this.memo.get(at);
		if (value === undefined) throw new DamagedFile('pickle recalls what it never kept');
		return value;
	}
}
