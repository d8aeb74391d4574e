/** What an Xid means and what to do, as operators use them. Source: failure-modes b5 and the driver's catalogue. */
const XIDS: readonly (readonly [numbers: readonly number[], advice: string])[] = [
	[[13, 31], 'fault in a program: restart it; repeated on one card only points to hardware'],
	[[43], "a program's channel stopped: restart the program"],
	[[45], 'channels torn down: look for an earlier Xid; alone after a kill of ours it is normal'],
	[[48], 'double-bit ECC error: reset the card, then look for Xid 63 or 64'],
	[[61, 62], 'internal microcontroller halted: reset or reboot'],
	[[63], 'row remap recorded: reset at the next chance'],
	[[64], 'row remap failed: replace the card'],
	[[69, 109], 'graphics engine or context switch timed out: restart the program; repeated: reset'],
	[[74], 'NVLink error: check peers and cables, reset'],
	[[79], 'the card has fallen off the bus: reboot; if it comes back look at power, PCIe and heat'],
	[[92], 'high rate of single-bit errors: watch'],
	[[94], 'contained ECC error: restart the program'],
	[[95], 'uncontained ECC error: drain and reset'],
	[[119, 120], 'GSP does not answer: reset, mostly a reboot; tools hang meanwhile'],
	[[140, 143], 'unrecovered ECC error or failed start: reset; repeated: replace'],
	[[144, 145, 146, 147, 148, 149, 150], 'NVLink 5 error: see the catalogue of the driver'],
	[[154], 'the driver changed its advice for this card: follow the text'],
];

export const xidAdvice = (xid: number): string =>
	XIDS.find(([numbers]) => numbers.includes(xid))?.[1] ?? 'see the Xid catalogue of the driver';
