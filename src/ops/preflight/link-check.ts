import {fresh} from '../facts.ts';
import {type CardLink, distanceOf, LINKS, type Topology} from '../formats/topology.ts';
import {hasNoCards} from '../no-cards.ts';
import {describe} from '../outcome.ts';
import {type Finding, fail, note, type PreflightCheck, unseen, unseenAside, warn} from './check.ts';

/** Pairs beyond these are worth their names: each byte between them leaves the host bridge. */
const NAMED_FROM = LINKS.indexOf('NODE');

/** Held against what is expected (`expect.links`) and against the last start that came up. */
export const LINK_CHECK: PreflightCheck = {
	id: 'topology',
	says: 'the cards are linked as they should be',
	blocks: 'launch',
	mends: null,
	finds({facts, target}) {
		if (!target.server || hasNoCards(facts, target)) return null;
		const farthest = target.expect.links ?? null;
		const before = fresh(facts.server)?.lastStart?.topology ?? null;
		const seen = fresh(facts.topology);
		if (!seen) {
			const failing = facts.topology?.failing;
			const why = failing ? describe(failing.failure) : 'no look has ended yet';
			return (farthest || before ? unseen : unseenAside)(`how the cards are linked is not known: ${why}`);
		}
		const tooFar = farthest ? seen.links.filter(({word}) => distanceOf(word) > LINKS.indexOf(farthest)) : [];
		const wrong = [
			...[...byWord(tooFar)].map(([word, pairs]) =>
				fail(`${names(pairs)}: ${word}, expected ${farthest === 'NV' ? 'NVLink' : `${farthest} or nearer`}`),
			),
			...(before ? changes(before, seen) : []),
		];
		return wrong.length > 0 ? wrong : [note(inWords(seen))];
	},
};

/** A lost NVLink stops a launch; another way over PCIe only makes it slower. */
function changes(before: Topology, now: Topology): readonly Finding[] {
	const was = new Map(before.links.map(({one, other, word}) => [`${one}-${other}`, word]));
	return now.links.flatMap(({one, other, word}) => {
		const then = was.get(`${one}-${other}`);
		if (then === undefined || then === word) return [];
		const words = `GPU ${one}-${other}: ${word}, ${then} when the server last came up`;
		return [distanceOf(then) === 0 && distanceOf(word) !== 0 ? fail(words) : warn(words)];
	});
}

/** `8 cards, 28 pairs: 12 NODE (0-1 0-2 …), 16 SYS (0-4 …)`. */
function inWords({cards, links}: Topology): string {
	if (links.length === 0) return 'one card';
	const kinds = [...byWord(links)].map(([word, pairs]) => {
		const named =
			distanceOf(word) >= NAMED_FROM ? ` (${pairs.map(({one, other}) => `${one}-${other}`).join(' ')})` : '';
		return `${pairs.length} ${word}${named}`;
	});
	return `${cards} cards, ${links.length} pair${links.length === 1 ? '' : 's'}: ${kinds.join(', ')}`;
}

const names = (pairs: readonly CardLink[]): string => `GPU ${pairs.map(({one, other}) => `${one}-${other}`).join(' ')}`;

function byWord(links: readonly CardLink[]): ReadonlyMap<string, readonly CardLink[]> {
	const kinds = new Map<string, CardLink[]>();
	for (const link of links) kinds.set(link.word, [...(kinds.get(link.word) ?? []), link]);
	return new Map([...kinds].sort(([one], [other]) => distanceOf(one) - distanceOf(other)));
}
