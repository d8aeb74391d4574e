import {Complaint} from '../outcome.ts';
import {normaliseBusId} from './bus-id.ts';

/** A card that the tool could only name in a sentence. */
export type LostCard = {readonly busId: string; readonly says: string; readonly advice: string};

const LOST_ADVICE =
	'read the kernel log for Xid 79, 119 or 154 of this card; killing processes will not help; a reboot or power cycle is the likely fix; do not relaunch on all GPUs';

/** `Unable to determine the device handle for GPU 0000:0B:00.0: Unknown Error`, with and without the blank. */
export function lostCard(note: string): LostCard | null {
	const match = /^Unable to determine the device handle for GPU\s*([0-9a-f:.]+?):\s+(.+)$/i.exec(note.trim());
	if (!match) return null;
	const busId = normaliseBusId(match[1] ?? '') ?? match[1] ?? '';
	const says = (match[2] ?? '').replace(/\.\s+/g, '. ').trim();
	return {busId, says, advice: LOST_ADVICE};
}

export type SmiSituation = {
	/** Exit status of the tool, or of `timeout` around it. */
	readonly status: number;
	readonly notes: readonly string[];
	/** Text of $PROC/driver/nvidia/version, '' where there is none. */
	readonly moduleVersion: string;
	/** Device nodes `nvidia0` … below $DEV. */
	readonly nodes: readonly string[];
};

/** What the tool says is wrong, with what to do. Words decide, not the status: it differs between versions. */
export function troubleOf({status, notes, moduleVersion, nodes}: SmiSituation): Complaint | null {
	const said = notes.join('\n');
	const complain = (says: string, advice: string) => new Complaint('nvidia-smi', says, advice);
	if (status === 124 || status === 137)
		return complain(
			'no answer in 5 s',
			'the driver holds a lock or is stuck: read the kernel log for Xid 45, 119, 120 or 79; values shown are old; asking more often makes it worse',
		);
	if (/driver\/library version mismatch/i.test(said)) return mismatch(said, moduleVersion);
	if (/Failed to initialize NVML: Unknown Error/i.test(said))
		return complain(
			'Failed to initialize NVML: Unknown Error',
			'in a container: it lost its device access (a daemon-reload on its host does that) while the host driver is healthy; restart the container, not the host',
		);
	if (/couldn't communicate with the NVIDIA driver|driver not loaded/i.test(said))
		return complain(
			'the driver is not loaded',
			'after a boot or kernel upgrade wait for the module; then look at the kernel log and `modinfo nvidia`',
		);
	if (/insufficient permissions?/i.test(said) && notes.length > 0)
		return complain(
			'insufficient permissions',
			'the device nodes are closed to this user or by the device cgroup: check /dev/nvidia* and the container settings',
		);
	if (/no devices were found/i.test(said))
		return complain(
			'no devices were found',
			`the driver is loaded but no card answers: check the device nodes (${nodes.length === 0 ? 'none there' : nodes.join(' ')}), pass-through, and lspci for cards off the bus`,
		);
	if (/Failed to initialize NVML/i.test(said))
		return complain(said.split('\n')[0] ?? said, 'check the device nodes and the libraries of this container or host');
	if (status === 127 || status === 126) return notThere(nodes);
	return null;
}

function mismatch(said: string, moduleVersion: string): Complaint {
	const library = /NVML library version:\s*([\d.]+)/i.exec(said)?.[1];
	const loaded = /Kernel Module(?: for \S+)?\s+([\d.]+)/.exec(moduleVersion)?.[1];
	const versions = [loaded && `kernel module ${loaded}`, library && `library ${library}`].filter(Boolean).join(', ');
	return new Complaint(
		'nvidia-smi',
		`driver/library version mismatch${versions === '' ? '' : `: ${versions}`}`,
		'running GPU processes may still work, so do not restart a healthy server now; reboot, or reload the modules when nothing uses them; in a container check that its library equals the host module',
	);
}

function notThere(nodes: readonly string[]): Complaint {
	if (nodes.length > 0)
		return new Complaint(
			'nvidia-smi',
			'command not found',
			`device nodes are there (${nodes.join(' ')}): install the driver's tools or mend the PATH of this route`,
		);
	return new Complaint(
		'nvidia-smi',
		'command not found, and no NVIDIA device node',
		'this machine shows no NVIDIA GPU: watch another host, or pass the GPUs through to this guest',
	);
}
