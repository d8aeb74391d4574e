import {type Command, show} from '../command.ts';
import type {Environment, Transport} from './transport.ts';

/**
 * A host behind another: the same contract with an argument prefix (`pct exec 129 --`). The prefix runs with whatever PATH
 * the outer login has plus the system directories, since `pct` lives in /usr/sbin and a login may lack that.
 */
export function throughTransport(outer: Transport, prefix: Command, environment: Environment): Transport {
	const widen = ['/bin/sh', '-c', 'PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; exec "$@"', 'sh'];
	return {
		label: `${outer.label} ${show(prefix.filter(word => word !== '--'))}`,
		environment,
		open: (command, limitMs, urgent) => outer.open([...widen, ...prefix, ...command], limitMs, urgent),
		close: () => outer.close(),
	};
}
