import {fresh} from '../facts.ts';
import {flagsUnchecked, importedPackage} from '../hook/package-flags.ts';
import {dumpObjections, dumpWarnings} from '../operations/dump-way.ts';
import {isRenamed, unknownFlags} from '../server/protections.ts';
import {fail, failWhen, type PreflightCheck, unseen, unseenAside, warn} from './check.ts';

const NOT_SEEN = 'the files it needs have not been seen yet, or the last look failed';

/** What the server loads, what dumps, and what the extractor reads. */
export const FILE_CHECKS: readonly PreflightCheck[] = [
	{
		id: 'dump-way',
		says: 'the package that would be imported dumps what the extractor reads',
		blocks: 'launch',
		mends: 'restore-files',
		finds(situation) {
			if (!situation.target.server || !situation.target.dump) return null;
			if (!fresh(situation.facts.files)) return unseen(NOT_SEEN);
			return [...dumpObjections(situation).map(fail), ...dumpWarnings(situation, true).map(warn)];
		},
		remains: situation => dumpObjections(situation, true).map(fail),
	},
	{
		id: 'flags',
		says: 'this SGLang has every flag of the launch',
		blocks: 'launch',
		mends: null,
		finds({facts, target}) {
			const found = importedPackage(facts);
			if (!target.server || !found) return null;
			const why = flagsUnchecked(facts);
			if (why !== null) return unseenAside(`flags not checked, because ${why}`);
			const unknown = unknownFlags(target.server.args, found).filter(
				flag => target.server?.protect !== true || !isRenamed(flag),
			);
			return failWhen(unknown.length > 0, `this SGLang has no ${unknown.join(', ')}: take it out of server.args`);
		},
	},
	{
		id: 'script',
		says: 'the extraction script is in place, where a boot does not empty it',
		blocks: 'extraction',
		mends: 'restore-files',
		finds({facts, target}) {
			const script = target.extraction?.script;
			if (!script) return null;
			const file = fresh(facts.files)?.files.find(each => each.path === script.destination);
			if (!file) return unseen(NOT_SEEN);
			if (file.state === 'no answer') return unseen(`${file.path} does not answer`);
			if (file.state !== 'present')
				return [fail(`${file.path} is ${file.state === 'gone' ? 'gone' : 'another file'}: restore it first`)];
			return file.volatile ? [warn(`${file.path} lies where a boot empties it`)] : [];
		},
	},
];
