import {constants, openSync, readFileSync} from 'node:fs';
import {Socket} from 'node:net';
import type {Target} from '../../target.ts';
import type {ServerTrouble} from '../faults.ts';
import {type BoxPaths, boxPaths} from '../paths.ts';

export type PartBox = {
	readonly paths: BoxPaths;
	readonly target: Target;
	readonly hiddenSize: number;
	/** Version of the SGLang that the box has. */
	readonly sglang: string;
	/** Where the machine's own Python may lie; none: the box goes without. */
	readonly searchPath: readonly string[];
	readonly serverTrouble: ServerTrouble;
};

/** The box this part belongs to: its interpreter's wrapper says where it is. Throws outside a box. */
export function partBox(): PartBox {
	const root = process.env.RELIGHT_DRILL_BOX;
	if (root === undefined) throw new Error('not started in a drill box');
	const paths = boxPaths(root);
	return {paths, ...JSON.parse(readFileSync(paths.settings, 'utf8'))};
}

/**
 * Calls `ended` when the drill is gone. The leash is opened anew: Node makes its pipes non-blocking, and the inherited
 * description is shared with every other process of the box.
 */
export function whenLeashEnds(ended: () => void): void {
	const own = openSync('/proc/self/fd/3', constants.O_RDONLY | constants.O_NONBLOCK);
	const leash = new Socket({fd: own, readable: true, writable: false});
	leash.on('end', ended);
	leash.on('error', ended);
	leash.resume();
	leash.unref();
}
