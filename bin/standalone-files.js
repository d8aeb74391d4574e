// What `npm run build:standalone` leaves in dist: an executable and a note beside it. Other builds leave both there.
import {createHash} from 'node:crypto';
import {existsSync, readdirSync, readFileSync, rmSync} from 'node:fs';
import {join} from 'node:path';

export const standaloneName = architecture => `relight-extractor-linux-${architecture}`;
const isStandalone = name => /^relight-extractor-linux-\w+(\.json)?$/.test(name);

export const sha256Of = path => createHash('sha256').update(readFileSync(path)).digest('hex');

/** Chunks are named by their content: old ones would pile up. */
export function clearDist() {
	if (!existsSync('dist')) return;
	for (const name of readdirSync('dist'))
		if (!isStandalone(name)) rmSync(join('dist', name), {recursive: true, force: true});
}

/** One that was made of another extractor than the one that is built now would not be what it is taken for. */
export function dropStale(bundle) {
	const made = sha256Of(bundle);
	const notes = readdirSync('dist').filter(name => isStandalone(name) && name.endsWith('.json'));
	for (const note of notes) {
		const {of} = JSON.parse(readFileSync(join('dist', note), 'utf8'));
		if (of === made) continue;
		const name = note.slice(0, -'.json'.length);
		for (const each of [note, name]) rmSync(join('dist', each), {force: true});
		process.stderr.write(`${name} was made of another extractor and is gone: npm run build:standalone makes it anew\n`);
	}
}
