import {closeSync, fstatSync, mkdirSync, openSync, readFileSync, readSync, writeSync} from 'node:fs';
import {dirname, join, relative} from 'node:path';
import type {CheckedFile} from './check-file.ts';
import {atLeast, type Findings, type Identity, LEVELS, type Level} from './verdict.ts';

/** What else a result depends on, as text: two results of different questions are not the same result. */
export type Question = {readonly level: Level; readonly hidden: number | null; readonly norm: string | null};

type Line = Findings & Identity & Question & {readonly file: string};

/**
 * Results of earlier runs over one tree, in `<tree>/.relight/verified.ndjson`: one line per file looked at, the last one
 * counts, a torn or foreign line is passed over. Where the tree cannot be written to, nothing is remembered.
 */
export class Remembered {
	private readonly lines = new Map<string, Line>();
	private readonly path: string;
	private fd: number | null = null;
	/** Why nothing can be kept, if so. */
	trouble: string | null = null;

	constructor(private readonly tree: string) {
		this.path = join(tree, '.relight', 'verified.ndjson');
		for (const text of readLines(this.path)) {
			const line = lineOf(text);
			if (line) this.lines.set(line.file, line);
		}
	}

	/** What is known of a file whose bytes are still the same, if it answers this question. */
	recall(path: string, {bytes, mtimeMs, inode}: Identity, question: Question): Findings | null {
		const line = this.lines.get(relative(this.tree, path));
		if (!line || line.bytes !== bytes || line.mtimeMs !== mtimeMs || line.inode !== inode) return null;
		return answers(line, question) ? line : null;
	}

	/** Kept once it is written; not synced, as a lost line only costs another look. */
	keep(found: CheckedFile, question: Question): void {
		const {verdict} = found.verdict;
		if (this.trouble !== null || verdict === 'unverifiable') return;
		const {path, identity, ...findings} = found;
		try {
			this.fd ??= openForLines(this.path);
			writeSync(
				this.fd,
				`${JSON.stringify({file: relative(this.tree, path), ...identity, ...question, ...findings})}\n`,
			);
		} catch (error) {
			this.trouble = `${this.path}: ${error instanceof Error ? error.message : error}`;
		}
	}

	close(): void {
		if (this.fd !== null) closeSync(this.fd);
		this.fd = null;
	}
}

/** A deeper look that found nothing answers a shallower question; a suspect answers only the question that found it. */
function answers(line: Line, {level, hidden, norm}: Question): boolean {
	if (line.hidden !== hidden || (level === 'values' && line.norm !== norm)) return false;
	return line.level === level || (line.verdict.verdict === 'done' && atLeast(line.level, level));
}

function readLines(path: string): string[] {
	try {
		return readFileSync(path, 'utf8').split('\n');
	} catch {
		return [];
	}
}

function lineOf(text: string): Line | null {
	try {
		const line: Partial<Line> | null = JSON.parse(text);
		const whole =
			typeof line?.file === 'string' &&
			typeof line.bytes === 'number' &&
			LEVELS.some(level => level === line.level) &&
			typeof line.verdict?.verdict === 'string' &&
			Array.isArray(line.notes);
		return whole ? (line as Line) : null;
	} catch {
		return null;
	}
}

/** Appends; what a killed run left without an end of line stays a line of its own. */
function openForLines(path: string): number {
	mkdirSync(dirname(path), {recursive: true});
	const fd = openSync(path, 'a+', 0o644);
	const {size} = fstatSync(fd);
	const last = Buffer.alloc(1);
	if (size > 0 && readSync(fd, last, 0, 1, size - 1) === 1 && last[0] !== 0x0a) writeSync(fd, '\n');
	return fd;
}
