import {DamagedFile} from './damage.ts';
import {PickleBytes} from './pickle-bytes.ts';
import {callOf, globalOf, type Pickled, storageOf} from './pickled.ts';

/**
 * A reader for pickles that torch makes of trees of tensors. Nothing is ever called or made from a name: known names
 * become inert marks, everything else is refused. Also refused: damage, other opcodes, anything out of bounds.
 */
export const MAX_PICKLE_BYTES = 16 * 1024 * 1024;
const MAX_OPERATIONS = 2_000_000;
const MAX_STACK = 200_000;
/** Memo entries and containers alive; a text that asks for more is a bomb. */
const MAX_OBJECTS = 500_000;
const MARK = Symbol('mark');

type Slot = Pickled | typeof MARK;

/** `protocol` over 2 is valid but refused by torch's weights_only. */
export type Unpickled = {readonly value: Pickled; readonly protocol: number};

/** The tree that a pickle describes. Throws DamagedFile. */
export const unpickle = (text: Buffer): Pickled => unpickled(text).value;

export function unpickled(text: Buffer): Unpickled {
	if (text.length > MAX_PICKLE_BYTES) throw refuse('pickle over 16 MiB');
	return new Machine(text).run();
}

const refuse = (words: string): DamagedFile => new DamagedFile(words, 'pickle');

class Machine {
	private readonly stack: Slot[] = [];
	private readonly memo = new Map<number, Pickled>();
	private readonly from: PickleBytes;
	private objects = 0;
	private protocol = 0;

	constructor(text: Buffer) {
		this.from = new PickleBytes(text);
	}

	run(): Unpickled {
		for (let count = 0; count < MAX_OPERATIONS; count++) {
			const code = this.from.byte();
			if (code === 0x2e) return {value: this.finish(), protocol: this.protocol};
			const value = this.produce(code);
			if (value === undefined) this.act(code);
			else if (this.stack.push(value) > MAX_STACK) throw refuse('pickle is nested too deep');
		}
		throw refuse('pickle has too many operations');
	}

	private finish(): Pickled {
		const value = this.pop();
		if (this.stack.length > 0) throw refuse('pickle leaves values behind');
		if (this.from.left > 0) throw refuse('bytes after the end of the pickle');
		return value;
	}

	/** What an opcode puts on the stack; undefined for one that works on what is there. */
	private produce(code: number): Slot | undefined {
		const {from} = this;
		switch (String.fromCharCode(code)) {
			case '}':
				return this.made({kind: 'dict', entries: new Map()});
			case ']':
				return this.made({kind: 'list', items: []});
			case ')':
				return this.made({kind: 'tuple', items: []});
			case '(':
				return MARK;
			case 't':
				return this.made({kind: 'tuple', items: this.toMark()});
			case '\x85':
			case '\x86':
			case '\x87':
				return this.made({kind: 'tuple', items: this.popMany(code - 0x84)});
			case 'X':
				return from.word(from.uint32());
			case '\x8c':
				return from.word(from.byte());
			case 'J':
				return from.int32();
			case 'K':
				return from.byte();
			case 'M':
				return from.uint16();
			case 'G':
				return from.double();
			case '\x8a':
				return from.long();
			case 'N':
				return null;
			case '\x88':
			case '\x89':
				return code === 0x88;
			case 'c':
				return this.made(globalOf(from.line(), from.line()));
			case '\x93': {
				const [module, name] = this.popMany(2);
				if (typeof module !== 'string' || typeof name !== 'string') throw refuse('pickle names no name');
				return this.made(globalOf(module, name));
			}
			case 'h':
				return this.recall(from.byte());
			case 'j':
				return this.recall(from.uint32());
			case 'Q':
				return this.made(storageOf(this.pop()));
			case 'R': {
				const [call = null, argument = null] = this.popMany(2);
				return this.made(callOf(call, argument));
			}
			default:
				return undefined;
		}
	}

	private act(code: number): void {
		const {from} = this;
		switch (String.fromCharCode(code)) {
			case '\x80':
				this.protocol = Math.max(this.protocol, from.byte());
				if (this.protocol < 2 || this.protocol > 5) throw refuse(`pickle protocol ${this.protocol} is refused`);
				break;
			case '\x95':
				if (from.bytes(8).readBigUInt64LE(0) > BigInt(from.left)) throw refuse('pickle ends early');
				break;
			case 'q':
				this.keep(from.byte());
				break;
			case 'r':
				this.keep(from.uint32());
				break;
			case '\x94':
				this.keep(this.memo.size);
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
			case 'b': {
				// State of an OrderedDict (`_metadata`): nothing that a tensor needs.
				this.pop();
				const kept = this.top();
				if (kept === null || typeof kept !== 'object' || kept.kind !== 'dict')
					throw refuse('pickle gives state to no dict');
				break;
			}
			default:
				throw refuse(`pickle opcode 0x${code.toString(16)} is refused`);
		}
	}

	private made<T>(value: T): T {
		if (++this.objects > MAX_OBJECTS) throw refuse('pickle holds too many values');
		return value;
	}

	private keep(at: number): void {
		this.memo.set(at, this.top());
		if (this.memo.size > MAX_OBJECTS) throw refuse('pickle remembers too many values');
	}

	private append(items: Pickled[]): void {
		const list = this.top();
		if (list === null || typeof list !== 'object' || list.kind !== 'list') throw refuse('pickle appends to no list');
		for (const item of items) list.items.push(item);
	}

	private set(items: Pickled[]): void {
		const dict = this.top();
		if (dict === null || typeof dict !== 'object' || dict.kind !== 'dict' || items.length % 2) {
			throw refuse('pickle sets items of no dict');
		}
		for (let at = 0; at < items.length; at += 2) dict.entries.set(items[at] ?? null, items[at + 1] ?? null);
	}

	private pop(): Pickled {
		const value = this.stack.pop();
		if (value === undefined || value === MARK) throw refuse('pickle takes from an empty stack');
		return value;
	}

	private top(): Pickled {
		const value = this.stack.at(-1);
		if (value === undefined || value === MARK) throw refuse('pickle looks at an empty stack');
		return value;
	}

	private popMany(count: number): Pickled[] {
		const items = new Array<Pickled>(count);
		for (let left = count; left > 0; left--) items[left - 1] = this.pop();
		return items;
	}

	private toMark(): Pickled[] {
		const items: Pickled[] = [];
		for (;;) {
			const value = this.stack.pop();
			if (value === undefined) throw refuse('pickle has no mark');
			if (value === MARK) return items.reverse();
			items.push(value);
		}
	}

	private recall(at: number): Pickled {
		const value = this.memo.get(at);
		if (value === undefined) throw refuse('pickle recalls what it never kept');
		return value;
	}
}
