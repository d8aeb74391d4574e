// Builds the extractor as one executable: Node itself with the program inside, for hosts that have no Node.
import {execFileSync, spawnSync} from 'node:child_process';
import {chmodSync, copyFileSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join} from 'node:path';
import {build} from 'esbuild';
import {COMMON} from './build-options.js';
import {sha256Of, standaloneName} from './standalone-files.js';

/** Both are Node's own: where it looks for a program, and what says that there is one. */
const RESOURCE = 'NODE_SEA_BLOB';
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';

const wrong =
	process.platform !== 'linux'
		? `an executable for Linux is built on Linux, not on ${process.platform}`
		: process.config.variables.node_shared
			? 'this Node is only a shell around its libraries: use the one of nodejs.org'
			: null;
if (wrong !== null) {
	process.stderr.write(`build:standalone: ${wrong}\n`);
	process.exit(1);
}

const name = standaloneName(process.arch);
// In dist, so that it is put in its place by a rename.
const folder = mkdtempSync(join('dist', `${name}.building-`));
try {
	await make(join(folder, name));
	const {size} = statSync(join(folder, name));
	const note = {bytes: size, sha256: sha256Of(join(folder, name)), of: sha256Of('dist/extractor.mjs')};
	writeFileSync(join(folder, 'note'), `${JSON.stringify(note)}\n`);
	rmSync(join('dist', `${name}.json`), {force: true});
	renameSync(join(folder, name), join('dist', name));
	renameSync(join(folder, 'note'), join('dist', `${name}.json`));
	process.stdout.write(`dist/${name}  ${(size / 1e6).toFixed(1)} MB, Node ${process.versions.node}\n`);
} finally {
	rmSync(folder, {recursive: true, force: true});
}

async function make(executable) {
	await build({
		...COMMON,
		// The only form that a program inside of Node 20 can have; nothing in it may ask for its own place.
		format: 'cjs',
		logOverride: {'empty-import-meta': 'error'},
		entryPoints: ['bin/extractor.ts'],
		outfile: join(folder, 'extractor.cjs'),
	});
	const settings = {main: 'extractor.cjs', output: 'blob', disableExperimentalSEAWarning: true};
	writeFileSync(join(folder, 'sea.json'), JSON.stringify({...settings, useSnapshot: false, useCodeCache: false}));
	// Named from their own folder: the names go into the executable.
	execFileSync(process.execPath, ['--experimental-sea-config', 'sea.json'], {cwd: folder, stdio: 'pipe'});
	copyFileSync(process.execPath, executable);
	chmodSync(executable, 0o755);
	strip(executable);
	// By its command, for it warns about section names that no one needs; when it fails they are told.
	const postject = createRequire(import.meta.url).resolve('postject/dist/cli.js');
	const argv = [postject, executable, RESOURCE, join(folder, 'blob'), '--sentinel-fuse', FUSE];
	execFileSync(process.execPath, argv, {stdio: 'pipe'});
	const said = execFileSync(executable, ['--version'], {encoding: 'utf8', env: {}});
	if (!said.startsWith('relight ')) throw new Error(`it starts as something else: ${said}`);
}

/** An eighth less to send. Where it cannot be done, or what comes of it does not run, it is left as it was. */
function strip(executable) {
	const less = `${executable}.less`;
	if (spawnSync('strip', ['-s', '-o', less, executable]).status !== 0) return;
	const ran = spawnSync(less, ['-p', '6*7'], {encoding: 'utf8', env: {}});
	if (ran.stdout.trim() === '42') renameSync(less, executable);
}
