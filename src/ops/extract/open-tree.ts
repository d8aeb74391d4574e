import {readModelNorm} from '../verify/norm.ts';
import {quarantine} from './commit.ts';
import {Dataset, DatasetError} from './dataset.ts';
import {type ExtractConfig, type ExtractIo, Stopped} from './extract-io.ts';
import {FinalNorm} from './final-norm.ts';
import {leftTemporaries, sampleFiles} from './inventory.ts';
import {type Journal, type JournalFacts, readJournal} from './journal.ts';
import type {Extraction} from './layouts.ts';
import type {Writer} from './lock.ts';
import {identityOf, type Manifest, Refusal, readManifest, refuseDifferent, writeManifest} from './manifest.ts';
import {manifestPath} from './manifest-path.ts';
import {mirrorTree} from './mirror.ts';
import type {Report} from './report.ts';
import {leftStaged} from './staging.ts';
import {takeStock} from './take-stock.ts';

export type Tree = {
	readonly dataset: Dataset;
	readonly ledger: Awaited<ReturnType<typeof takeStock>>['ledger'];
	readonly manifest: Manifest;
	/** Also the extraction with the form that the tree has. */
	readonly norm: FinalNorm;
};

const FILES_A_BEAT = 64;

/**
 * From configuration and disk to a tree that may be written to: the dataset is read once, the manifest compared, every
 * sample's standing found. Throws Refusal when they do not belong together; nothing was moved or written then.
 */
export async function openTree(
	{extraction: configured, server}: ExtractConfig,
	io: ExtractIo,
	journal: {readonly path: string; readonly log: Journal},
	writer: Writer,
	report: Report,
): Promise<Tree> {
	const {output} = configured;
	report.verifying('reading the dataset');
	const dataset = await Dataset.scan(configured.dataset, configured, () => refuseToGoOn(io.stop));
	const extraction = mirrorTree(configured);
	refuseOther(dataset, extraction);
	const path = manifestPath(output);
	const identity = identityOf(extraction, server, dataset);
	const known = readManifest(path);
	if (known) refuseDifferent(path, known.identity, identity);
	const adopting = known === null && holdsFiles(extraction, io.adopt, path);
	const facts = readJournal(journal.path);
	const stock = await takeStock(extraction, dataset, adopting ? onlyDoubts(facts) : facts, async (looked, of) => {
		refuseToGoOn(io.stop);
		if (looked % FILES_A_BEAT !== 0) return;
		report.progress.message = `looked at ${looked} of ${of} files`;
		await new Promise(resolve => setImmediate(resolve));
	});
	const norm = new FinalNorm(extraction, readModelNorm(server.model));
	norm.recall(known?.identity.norm);
	norm.lookAt(stock.ledger.having('done'));
	const {bootId, pid} = writer;
	journal.log.add({run: 'started', pid, bootId, tool: io.tool, at: Date.now()}, ...stock.news);
	const died = 'left by a writer that died';
	const gone = 'staged for a run that is gone';
	for (const left of leftTemporaries(output)) report.quarantined(null, quarantine(io.files, output, left, died), died);
	for (const left of leftStaged(output)) report.quarantined(null, quarantine(io.files, output, left, gone), gone);
	const done = stock.ledger.count('done');
	report.event('verified', {
		clean: facts.clean,
		looked: stock.looked,
		full: stock.full,
		standings: stock.ledger.words(),
	});
	const manifest: Manifest = known ?? {
		schema: 'relight.run/1',
		createdAt: new Date().toISOString(),
		tool: io.tool,
		adopted: adopting ? {files: done, proof: `structure of all, checksums of ${stock.full}`} : null,
		identity: {...identity, norm: norm.open ? null : norm.norm},
	};
	if (!known) writeManifest(io.files, path, manifest);
	if (adopting) {
		report.line(`Adopted ${done} files of ${output}: ${stock.ledger.words()}`);
		report.event('adopted', {files: done, full: stock.full});
	}
	return {dataset, ledger: stock.ledger, manifest, norm};
}

/** Throws DatasetError where it is not the one that the configuration expects. */
function refuseOther({path, records, sha256}: Dataset, expected: Extraction): void {
	if (expected.records !== null && records !== expected.records)
		throw new DatasetError(`${path}: ${records} records where ${expected.records} are expected`);
	if (expected.sha256 && sha256 !== expected.sha256)
		throw new DatasetError(`${path} has sha256 ${sha256} where ${expected.sha256} is expected`);
}

function holdsFiles({output}: Extraction, adopt: boolean, manifest: string): boolean {
	const files = sampleFiles(output).length;
	if (files > 0 && !adopt) {
		throw new Refusal(
			`${output} holds ${files} sample files and there is no ${manifest}: --adopt looks at all of them and takes the tree over`,
		);
	}
	return files > 0;
}

/** Whatever an older journal vouches for, an adopted tree is looked at. */
const onlyDoubts = (facts: JournalFacts): JournalFacts => ({...facts, marks: new Map(), clean: false});

function refuseToGoOn(stop: AbortSignal): void {
	if (stop.aborted) throw new Stopped('stopped as asked');
}
