import {DatasetError} from '../src/ops/extract/dataset.ts';
import {readNormWeight} from '../src/ops/verify/norm.ts';
import {exitOf, progressWords, type Report, reportLines, reportOf} from '../src/ops/verify/report.ts';
import {setAside} from '../src/ops/verify/set-aside.ts';
import {MissingPath, UnreadableDirectory} from '../src/ops/verify/tree.ts';
import {LEVELS, type Level} from '../src/ops/verify/verdict.ts';
import {DEFAULT_WORKERS, type Progress, type Verified, verify} from '../src/ops/verify/verify.ts';
import {UsageError} from './configuration.ts';
import type {Options} from './relight.ts';

/** Integrity of output trees and files. Exit 0 all done, 1 holes or files that cannot be judged, 2 suspects. */
export async function runVerify(paths: readonly string[], options: Options): Promise<number> {
	if (paths.length === 0) throw new UsageError('relight verify: which tree or file?');
	const level = levelOf(options.level);
	const line = progressLine();
	let verified: Verified;
	try {
		verified = await verify(
			paths,
			{
				level,
				dataset: options.dataset ?? null,
				hidden: widthOf(options.hidden),
				normWeight: options.norm === undefined ? null : normWeight(options.norm),
				workers: DEFAULT_WORKERS,
			},
			line.tell,
		);
	} catch (error) {
		line.clear();
		return explain(error);
	}
	line.clear();
	const report = reportOf(verified, level);
	show(report, verified, options);
	for (const trouble of verified.troubles) process.stderr.write(`results are not remembered: ${trouble}\n`);
	return options.quarantine && report.suspects.length > 0 ? moveAside(verified) : exitOf(report);
}

function levelOf(word: string | undefined): Level {
	if (word === undefined) return 'structure';
	const level = LEVELS.find(each => each === word);
	if (!level) throw new UsageError(`relight verify: no level "${word}"; there are ${LEVELS.join(', ')}`);
	return level;
}

function widthOf(word: string | undefined): number | null {
	if (word === undefined) return null;
	const width = Number(word);
	if (!Number.isSafeInteger(width) || width < 1)
		throw new UsageError('relight verify: --hidden expects a whole number');
	return width;
}

function normWeight(path: string): Float32Array {
	try {
		return readNormWeight(path);
	} catch (error) {
		throw new UsageError(`relight verify: --norm ${path}: ${error instanceof Error ? error.message : error}`);
	}
}

/** What stands in the way of looking at all: one sentence. */
function explain(error: unknown): number {
	if (error instanceof MissingPath || error instanceof DatasetError)
		throw new UsageError(`relight verify: ${error.message}`);
	if (error instanceof UnreadableDirectory || (error instanceof Error && 'syscall' in error)) {
		process.stderr.write(`relight verify: ${error.message}\n`);
		return 3;
	}
	throw error;
}

function show(report: Report, verified: Verified, {json}: Options): void {
	process.stdout.write(json ? `${JSON.stringify(report)}\n` : `${reportLines(verified, report).join('\n')}\n`);
}

function moveAside({files}: Verified): number {
	const result = setAside(files);
	for (const {from, to} of result.moved) process.stderr.write(`moved ${from} to ${to}\n`);
	if (!result.done) {
		process.stderr.write(`not moved: ${result.words}\n`);
		return 4;
	}
	for (const path of result.left) process.stderr.write(`left ${path}: it has changed since it was looked at\n`);
	return 2;
}

const TELL_EVERY_MS = 200;

/** One line on a terminal's stderr, drawn over itself; nothing anywhere else. */
function progressLine(): {tell(progress: Progress): void; clear(): void} {
	if (!process.stderr.isTTY) return {tell: () => {}, clear: () => {}};
	const startedAt = performance.now();
	let toldAt = 0;
	return {
		tell(progress) {
			const now = performance.now();
			if (now - toldAt < TELL_EVERY_MS) return;
			toldAt = now;
			const words = progressWords(progress, (now - startedAt) / 1_000);
			process.stderr.write(`\r\x1b[2K${words.slice(0, (process.stderr.columns || 80) - 1)}`);
		},
		clear() {
			if (toldAt > 0) process.stderr.write('\r\x1b[2K');
		},
	};
}
