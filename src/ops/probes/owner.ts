import type {Owner} from './processes.ts';

/** Who keeps a process, in the words of the OWNER column. '-' is "nobody we can name". */
export function describeOwner(owner: Owner): string {
	switch (owner.kind) {
		case 'unit':
			return owner.unit;
		case 'user-unit':
			return `${owner.unit} (user ${owner.uid})`;
		case 'session':
			return `login session ${owner.session}`;
		case 'container':
			return `${owner.engine} ${owner.id.slice(0, 12)}`;
		case 'guest':
			return owner.unit ? `guest ${owner.guest} ${owner.unit}` : `guest ${owner.guest}`;
		case 'none':
			return 'no unit';
		case 'unknown':
			return '-';
	}
}
