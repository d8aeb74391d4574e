import {closeSync, existsSync, mkdirSync, openSync} from 'node:fs';
import {basename} from 'node:path';
import {openContainer} from '../tensor/container.ts';
import {DamagedFile} from '../tensor/damage.ts';
import {fileSource, type Source} from '../tensor/source.ts';
import type {DumpPlace, DumpSource, StagedDump, Wanted} from './dumps.ts';
import type {FinalNorm} from './final-norm.ts';
import {neededStates} from './forms.ts';
import {type Extraction, LAYOUTS, layoutOf, sampleStem} from './layouts.ts';
import {Refusal} from './manifest.ts';
import {refusalOf, smallText} from './raw-dump.ts';
import {planForm} from './sample-file.ts';
import {type Sidecar, wrongSidecar} from './sidecar.ts';
import {inspectStaged, someRows} from './staged-file.ts';
import {type StateName, type States, wrongStates} from './states.ts';
import {statesOf} from './stored-states.ts';

/**
 * Dumps of the hook that are files already: `<staging>/<rid>.ready`, with a sidecar that was there before. What the hook
 * refuses stands in the dump directory.
 */
export const stagedDumps = (place: DumpPlace, staging: string, norm: FinalNorm): DumpSource => ({
	named: true,
	states: 0,
	staging,
	close: () => place.watch.close(),
	expect(wanted) {
		// The hook makes it only when it starts.
		mkdirSync(staging, {recursive: true});
		return () => findStaged(place, staging, norm, wanted);
	},
});

async function findStaged(
	{dir, limitMs, watch}: DumpPlace,
	staging: string,
	norm: FinalNorm,
	wanted: Wanted,
): Promise<StagedDump> {
	const path = `${staging}/${wanted.rid}.ready`;
	const until = Date.now() + limitMs;
	const pause = watch.pauses();
	while (!existsSync(path)) {
		const refusal = refusalOf(`${dir}/req_${wanted.rid}`);
		if (refusal !== null) throw new Error(`the hook refused: ${refusal}`);
		if (Date.now() > until) throw new Error(`no staged file ${path} appeared`);
		await pause();
	}
	return readStaged(path, norm, wanted);
}

function readStaged(path: string, norm: FinalNorm, wanted: Wanted): StagedDump {
	const beside = `${path.slice(0, -'.ready'.length)}.json`;
	const sidecar: Sidecar = JSON.parse(smallText(beside));
	const {extraction} = norm;
	// The tree's own, where a final may have a side already: what lies under it is the sidecar's to say.
	const {form} = LAYOUTS[extraction.layout];
	const refused = wrongLayout(norm, sidecar);
	if (refused !== null) throw new Refusal(refused);
	// The hook names the root after the index in the request's name, where one stands there.
	const [, index] = /^relight-(\d+)-/.exec(wanted.rid) ?? [];
	const root = index === undefined ? 'archive' : sampleStem(layoutOf(extraction), Number(index));
	const plan = planForm(form, root, wanted.rows, wanted.hiddenSize);
	const wrong = wrongSidecar(sidecar, wanted, form, plan);
	if (wrong !== null) throw new Error(`the staged file ${basename(path)}: ${wrong}`);
	const named = (states: States): States => underOwnName(states, finalOf(sidecar));
	return {
		paths: [path, beside],
		staged: path,
		layers: sidecar.layers?.join(' ') ?? null,
		holds: neededStates(form).map(name => (isOnlyFinal(name, extraction) ? finalOf(sidecar) : name)),
		inspect: sample =>
			opened(path, source => {
				const rows = named(someRows(source, form, plan, wanted.rows, wanted.hiddenSize));
				const finish = inspectStaged(source, form, plan, sample, wanted.hiddenSize);
				const alike = wrongStates(rows);
				if (alike !== null) throw new DamagedFile(alike);
				norm.named(rows);
				return finish;
			}),
		read: () =>
			opened(path, source =>
				named(statesOf(openContainer(source, `staged${layoutOf(extraction).ending}`), form, wanted.hiddenSize)),
			),
	};
}

function opened<T>(path: string, look: (source: Source) => T): T {
	const fd = openSync(path, 'r');
	try {
		return look(fileSource(fd));
	} catch (error) {
		if (error instanceof DamagedFile) throw new Error(`the staged file ${basename(path)}: ${error.message}`);
		throw error;
	} finally {
		closeSync(fd);
	}
}

/** In a legacy tree the one final is what the hook says it is, whatever the tree wants. */
const isOnlyFinal = (name: StateName, {layout}: Extraction): boolean => layout === 'legacy' && name.startsWith('final');

const finalOf = ({norm}: Sidecar): StateName => (norm === 'post' ? 'final_post' : 'final_pre');

function underOwnName(states: States, name: StateName): States {
	const {final, ...others} = states;
	return final ? {...others, [name]: final} : states;
}

/** Why files that the hook stages are none of this tree, or null. */
function wrongLayout(norm: FinalNorm, {layout, norm: side}: Sidecar): string | null {
	const {extraction} = norm;
	if (layout !== extraction.layout)
		return `the hook stages files of layout ${layout}, the tree is one of ${extraction.layout}`;
	if (!norm.isOf(LAYOUTS[extraction.layout].form))
		return `the tree has a form of its own, which the hook cannot stage: launch the server with raw dumps`;
	if (layout === 'legacy' && side !== 'pre' && side !== 'post') return `the hook does not say which final it stages`;
	return null;
}
