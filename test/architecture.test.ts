import {readdirSync, readFileSync} from 'node:fs';
import {join, relative} from 'node:path';
import {expect, test} from 'vitest';

const ROOT = join(import.meta.dirname, '..');
const RANK: Record<string, number> = {ops: 0, state: 1, ui: 2, bin: 3};

const files = (folder: string): string[] =>
	readdirSync(join(ROOT, folder), {recursive: true, withFileTypes: true})
		.filter(entry => entry.isFile() && /\.tsx?$/.test(entry.name))
		.map(entry => relative(ROOT, join(entry.parentPath, entry.name)));

const imports = (file: string) =>
	[
		...readFileSync(join(ROOT, file), 'utf8').matchAll(
			/^(import|export) (type )?[^'"]*from '([^']+)'|import\('([^']+)'\)/gm,
		),
	].map(match => ({
		typeOnly: match[2] !== undefined,
		path: match[3] ?? match[4] ?? '',
	}));

const room = (file: string) => (file.startsWith('bin/') ? 'bin' : (file.split('/')[1] ?? ''));

test('ui → state → ops, wired in bin: nothing points up', () => {
	const wrong: string[] = [];
	for (const file of files('src')) {
		for (const {path} of imports(file)) {
			if (!path.startsWith('.')) continue;
			const target = relative(ROOT, join(ROOT, file, '..', path));
			if ((RANK[room(target)] ?? 9) > (RANK[room(file)] ?? -1)) wrong.push(`${file} → ${target}`);
		}
	}
	expect(wrong).toEqual([]);
});

/** A third-party package has one home; what is not listed may not be imported at all. */
const HOMES: Record<string, RegExp> = {
	execa: /^src\/ops\/transports\/local\.ts$/,
	ssh2: /^src\/ops\/(transports\/|drill\/)/,
	'ssh-config': /^src\/ops\/transports\/ssh-settings\.ts$/,
	chokidar: /^src\/ops\/(config|extract)\//,
	yaml: /^src\/ops\/(config|drill)\//,
	zod: /^src\/ops\/config\//,
	'zustand/vanilla': /^src\/(state\/store|ui\/)/,
	zustand: /^src\/ui\//,
	ink: /^src\/ui\//,
	'ink-table': /^src\/ui\//,
	react: /^src\/ui\//,
	'string-width': /^src\/ui\//,
};

test('a package from elsewhere is imported only where it lives', () => {
	const wrong: string[] = [];
	for (const file of files('src')) {
		for (const {path} of imports(file)) {
			if (path.startsWith('.') || path.startsWith('node:')) continue;
			if (!HOMES[path]?.test(file)) wrong.push(`${file}: ${path}`);
		}
	}
	expect(wrong).toEqual([]);
});

test('panes do not know one another, and neither do probes beyond the words they share', () => {
	const wrong = files('src/ui/panes').flatMap(file =>
		imports(file)
			.filter(({path}) => /^\.\/[a-z-]+-pane/.test(path))
			.map(({path}) => `${file}: ${path}`),
	);
	expect(wrong).toEqual([]);
});

test('there is no drawer for odds and ends', () => {
	expect(files('src').filter(file => /\/(utils?|helpers?|common|misc|index)\.tsx?$/.test(file))).toEqual([]);
});
