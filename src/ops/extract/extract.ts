import {mkdirSync} from 'node:fs';
import {dirname} from 'node:path';
import {DatasetChanged} from './dataset.ts';
import {type ExtractConfig, type ExtractIo, Stopped} from './extract-io.ts';
import {Journal} from './journal.ts';
import {takeLock, thisWriter, type Writer} from './lock.ts';
import {Refusal} from './manifest.ts';
import {Meter} from './meter.ts';
import {openTree, type Tree} from './open-tree.ts';
import {Progress} from './progress.ts';
import {Report} from './report.ts';
import {Run} from './run.ts';

const journalPath = (output: string): string => `${dirname(output)}/extraction-journal.ndjson`;

/**
 * Extracts what is not done yet, holes first to last, then what failed before. Exit status: 0 all done or stopped as
 * asked, 1 done but for samples that failed, 2 given up, 4 refused: another writer holds the tree, or it belongs to
 * another run than the one that is configured.
 */
export async function extract(config: ExtractConfig, io: ExtractIo): Promise<number> {
	const {extraction} = config;
	const {output} = extraction;
	mkdirSync(output, {recursive: true});
	const writer = thisWriter(io.proc);
	const lock = takeLock(`${output}/.relight-writer`, writer, io.proc, io.breakStaleLock);
	if (!lock.taken) {
		io.print(lock.words);
		return 4;
	}
	if (lock.broken) io.print(`Took over the lock of pid ${lock.broken.pid}, which is gone`);
	const report = new Report(output, new Progress(extraction.progress, writer, new Meter()), io.print);
	try {
		// A writer that died between making a directory and syncing its parent leaves it to us.
		for (const directory of [output, dirname(output)]) io.files.syncDirectory(directory);
		return await withJournal(config, io, writer, report);
	} catch (error) {
		return failed(error, report);
	} finally {
		report.progress.end();
		lock.release();
	}
}

async function withJournal(config: ExtractConfig, io: ExtractIo, writer: Writer, report: Report): Promise<number> {
	const path = journalPath(config.extraction.output);
	const log = new Journal(io.files, path);
	let begun = false;
	let state = 'failed';
	try {
		report.event('started', {pid: writer.pid, tool: io.tool});
		report.line(`Dataset: ${config.extraction.dataset}`);
		report.line(`Output: ${config.extraction.output}`);
		const tree = await openTree(config, io, {path, log}, writer, report);
		begun = true;
		const code = await extractTree(config, io, tree, log, report);
		state = code === null ? 'stopped' : 'finished';
		return code ?? 0;
	} catch (error) {
		if (error instanceof Refusal || error instanceof DatasetChanged) state = 'refused';
		throw error;
	} finally {
		endJournal(log, begun ? state : null);
	}
}

/** Without the last line the next run looks harder. A run that never began does not vouch for the one before. */
function endJournal(log: Journal, state: string | null): void {
	try {
		if (state !== null) log.add({run: 'ended', state, at: Date.now()});
		log.close();
	} catch {}
}

/** null: stopped as asked. */
async function extractTree(
	config: ExtractConfig,
	io: ExtractIo,
	tree: Tree,
	log: Journal,
	report: Report,
): Promise<number | null> {
	const {ledger, dataset} = tree;
	const done = ledger.having('done');
	const wanted = dataset.records - ledger.count('filtered');
	for (let index = 0; index < dataset.records; index++) {
		if (ledger.get(index).state !== 'done') report.progress.remainingTokens += dataset.tokens(index);
	}
	report.skipping(done);
	report.line(`${done.length} of ${wanted} done, ${wanted - done.length} to extract`);
	const run = new Run(config, io, tree, log, report);
	try {
		await run.go();
	} catch (error) {
		if (!(error instanceof Stopped)) throw error;
		report.ended('stopped', 'stopped as asked', 0);
		report.line(`Stopped: ${counts(report)}`);
		return null;
	} finally {
		run.close();
	}
	const failures = ledger.having('failed');
	for (const index of failures) {
		const standing = ledger.get(index);
		if (standing.state === 'failed') report.line(`  [${index}] failed ${standing.times} times: ${standing.reason}`);
	}
	const code = failures.length > 0 ? 1 : 0;
	report.ended('finished', code ? `${failures.length} samples failed` : null, code);
	report.line(`Done: ${counts(report)}`);
	return code;
}

const counts = ({progress}: Report): string => `${progress.meter.extracted} extracted, ${progress.errors} errors`;

function failed(error: unknown, report: Report): number {
	if (error instanceof Stopped) {
		report.ended('stopped', 'stopped as asked', 0);
		return 0;
	}
	const words = error instanceof Error ? error.message : String(error);
	const refused = error instanceof Refusal || error instanceof DatasetChanged;
	report.ended('failed', words, refused ? 4 : 2);
	report.line(`${refused ? 'Refused' : 'Failed'}: ${words}`);
	return refused ? 4 : 2;
}
