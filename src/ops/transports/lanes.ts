import type {LaneName} from '../probes/probe.ts';
import {type Lane, openLane} from './lane.ts';
import type {Transport} from './transport.ts';

/** The shells of the route that works, by lane. Where the server opens too few sessions, one answers for another. */
export type Lanes = {
	/** Opened with the first request. */
	of(name: LaneName, transport: Transport): Lane;
	/** The server refused a shell for `name`: an open one serves both, the act's own only where there is no other. */
	share(name: LaneName): boolean;
	/** Ends a shell that looks, when what it does is done, so that a file can be sent in its place. */
	makeRoom(limitMs: number): Promise<boolean>;
	/** A shell is there. */
	readonly someOpen: boolean;
	/** Lets go of all; what is under way in them is lost. */
	drop(): void;
};

/** Whose shell others share first: the looks that are short and hang least. */
const SHARED_FIRST: readonly LaneName[] = [
	'services',
	'files',
	'processes',
	'command-lines',
	'driver',
	'mounts',
	'act',
];

export function openLanes(clock: () => number): Lanes {
	const lanes = new Map<LaneName, Lane>();
	const shared = new Map<LaneName, LaneName>();
	return {
		of(name, transport) {
			const own = shared.get(name) ?? name;
			const lane = lanes.get(own) ?? openLane(transport, clock, own === 'act');
			lanes.set(own, lane);
			return lane;
		},
		share(name) {
			const open = SHARED_FIRST.find(each => each !== name && lanes.get(each)?.open);
			if (!open) return false;
			lanes.get(name)?.close();
			lanes.delete(name);
			shared.set(name, open);
			return true;
		},
		async makeRoom(limitMs) {
			const name = SHARED_FIRST.findLast(each => lanes.get(each)?.open);
			const lane = name && lanes.get(name);
			if (!lane) return false;
			await lane.request(':', {limitMs, capBytes: 4_096});
			lane.close();
			lanes.delete(name);
			return true;
		},
		get someOpen() {
			return [...lanes.values()].some(lane => lane.open);
		},
		drop() {
			for (const lane of lanes.values()) lane.close();
			lanes.clear();
			shared.clear();
		},
	};
}
