import {DamagedFile} from './damage.ts';

/** JSON as data: objects are Maps, so that no key means anything, and a key that comes twice is seen. */
export type Json = string | number | boolean | null | readonly Json[] | ReadonlyMap<string, Json>;

const MAX_DEPTH = 16;

/** Parses a whole text. Refuses duplicate keys, deep nesting and whatever JSON does not allow, with DamagedFile. */
export function parseStrictJson(text: string): Json {
	const parser = new Parser(text);
	return parser.whole();
}

class Parser {
	private at = 0;

	constructor(private readonly text: string) {}

	whole(): Json {
		const value = this.value(0);
		this.blanks();
		if (this.at < this.text.length) throw this.wrong('more than one value');
		return value;
	}

	private value(depth: number): Json {
		if (depth > MAX_DEPTH) throw this.wrong('nested too deep');
		this.blanks();
		switch (this.text[this.at]) {
			case '{':
				return this.object(depth);
			case '[':
				return this.array(depth);
			case '"':
				return this.string();
			default:
				return this.bare();
		}
	}

	private object(depth: number): ReadonlyMap<string, Json> {
		const entries = new Map<string, Json>();
		this.take('{');
		if (this.found('}')) return entries;
		for (;;) {
			this.blanks();
			const key = this.string();
			if (entries.has(key)) throw new DamagedFile(`header names ${key.slice(0, 80)} twice`, 'header');
			this.take(':');
			entries.set(key, this.value(depth + 1));
			if (this.found('}')) return entries;
			this.take(',');
		}
	}

	private array(depth: number): readonly Json[] {
		const items: Json[] = [];
		this.take('[');
		if (this.found(']')) return items;
		for (;;) {
			items.push(this.value(depth + 1));
			if (this.found(']')) return items;
			this.take(',');
		}
	}

	private string(): string {
		const from = this.at;
		if (this.text[from] !== '"') throw this.wrong('a text belongs here');
		for (this.at++; this.text[this.at] !== '"'; this.at++) {
			if (this.at >= this.text.length) throw this.wrong('a text that does not end');
			if (this.text[this.at] === '\\') this.at++;
		}
		return this.native(this.text.slice(from, ++this.at)) as string;
	}

	private bare(): Json {
		const [word = ''] = /^[-+.\w]{1,40}/.exec(this.text.slice(this.at, this.at + 40)) ?? [];
		if (word === '') throw this.wrong('a value belongs here');
		this.at += word.length;
		return this.native(word);
	}

	/** One text, number or word, by JavaScript's own rules. */
	private native(piece: string): string | number | boolean | null {
		try {
			return JSON.parse(piece);
		} catch {
			throw this.wrong('no JSON');
		}
	}

	private blanks(): void {
		while (' \t\n\r'.includes(this.text[this.at] ?? 'x')) this.at++;
	}

	private take(char: string): void {
		if (!this.found(char)) throw this.wrong(`"${char}" belongs here`);
	}

	private found(char: string): boolean {
		this.blanks();
		if (this.text[this.at] !== char) return false;
		this.at++;
		return true;
	}

	private wrong(why: string): DamagedFile {
		return new DamagedFile(`header is damaged at character ${this.at}: ${why}`, 'header');
	}
}
