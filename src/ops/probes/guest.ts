/** The guest as its hypervisor sees it, asked only while the direct route is silent. */
export type GuestFacts = {
	readonly status: 'running' | 'stopped' | 'unknown';
	readonly lock: string | null;
	readonly frozen: boolean | null;
	readonly storage: string | null;
	/** Which of them is silent: the words for "unreachable". */
	readonly verdict: string;
};
