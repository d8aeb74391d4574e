import {type Command, show} from '../command.ts';
import {behind, completePrefix, explainPrefix} from './prefix.ts';
import type {Environment, Transport} from './transport.ts';

/**
 * A host behind another: the same contract with an argument prefix (`pct exec 129 --`). The prefix runs with whatever PATH
 * the outer login has plus the system directories, since `pct` lives in /usr/sbin and a login may lack that, and without a
 * language of its own, since what it says is read here.
 */
export function throughTransport(outer: Transport, given: Command, environment: Environment): Transport {
	const prefix = completePrefix(given);
	return {
		label: `${outer.label} ${show(prefix.filter(word => word !== '--'))}`,
		environment,
		open: (command, limitMs, urgent) => outer.open([...WIDEN, ...behind(prefix, command)], limitMs, urgent),
		explain: said => outer.explain?.(said) ?? explainPrefix(prefix, said),
		get asking() {
			return outer.asking ?? null;
		},
		close: () => outer.close(),
	};
}

const WIDEN: Command = [
	'/bin/sh',
	'-c',
	'PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin LC_ALL=C HOME=${HOME:-/root}; export PATH LC_ALL HOME; exec "$@"',
	'sh',
];
