import type {ConsoleState} from '../../state/state.ts';
import type {Binding, Group, Meaning, Moment, Scope} from './binding.ts';

/** The one set of keys that moves; no other binding may use them, in any scope. */
const MOTIONS: readonly {keys: readonly string[]; says: string; by(moment: Moment): number}[] = [
	{keys: ['j', 'down'], says: 'one down', by: () => 1},
	{keys: ['k', 'up'], says: 'one up', by: () => -1},
	{keys: ['g', 'home'], says: 'to the top', by: () => Number.NEGATIVE_INFINITY},
	{keys: ['G', 'end'], says: 'to the end', by: () => Number.POSITIVE_INFINITY},
	{keys: ['pagedown'], says: 'one page down', by: ({reach}) => reach.page},
	{keys: ['pageup'], says: 'one page up', by: ({reach}) => -reach.page},
	{keys: ['ctrl+d'], says: 'half a page down', by: ({reach}) => Math.ceil(reach.page / 2)},
	{keys: ['ctrl+u'], says: 'half a page up', by: ({reach}) => -Math.ceil(reach.page / 2)},
];

export const MOTION_KEYS: ReadonlySet<string> = new Set(MOTIONS.flatMap(({keys}) => keys));

/** All motions in a scope; in a text field only those that are no letters. */
export function motions(scope: Scope, group: Group, only: (key: string) => boolean = () => true): readonly Binding[] {
	return MOTIONS.map(({keys, says, by}) => ({
		scope,
		keys: keys.filter(only),
		says,
		group,
		...(says === 'one down' && {hint: {rank: 90, label: 'move'}}),
		means: (_state: ConsoleState, moment: Moment): Meaning => ({type: 'move', by: within(by(moment), moment)}),
	})).filter(binding => binding.keys.length > 0);
}

/** Never further than the list reaches, so that coming back takes as many keys as going. */
function within(by: number, {reach}: Moment): number {
	return Math.min(Math.max(by, -reach.at), Math.max(0, reach.last - reach.at));
}

export const unlettered = (key: string): boolean => key.length > 1;
