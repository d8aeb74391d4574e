import {troubleOf} from '../formats/nvidia-trouble.ts';
import {DEFINE_MARK, mark, readSections} from '../formats/sections.ts';
import {parseTopology, type Topology} from '../formats/topology.ts';
import {Complaint} from '../outcome.ts';
import type {Answer, Probe} from './probe.ts';
import {stillStuck, stuckPid, unlessStuck} from './stuck-tool.ts';

/** How the cards reach one another. It changes with a boot or a move of the guest, not while a host runs. */
export type TopologyFacts = Topology;

const SECTIONS = ['matrix', 'status'] as const;

/** Complaint in the tool's own words where it tells no matrix: not to know is not to be well linked. */
export const topology: Probe<TopologyFacts> = {
	id: 'topology',
	lane: 'driver',
	everyMs: 60_000,
	paceMs: () => 600_000,
	limitMs: 14_000,
	capBytes: 65_536,
	script: ({hints}) =>
		unlessStuck(
			'nvidia-smi',
			hints.stuckPids,
			`${DEFINE_MARK}; ${mark('matrix')}; timeout -k 1 5 nvidia-smi topo -m 2>&1; r=$?; ${mark('status')}; echo $r`,
		),
	parse: (answer: Answer) => {
		const stuck = stuckPid(answer.status, answer.stdout);
		if (stuck !== null) throw stillStuck(stuck);
		const {matrix, status: told} = readSections('nvidia-smi', answer.stdout, SECTIONS);
		const status = Number(told);
		if (status === 126 || status === 127)
			throw new Complaint(
				'nvidia-smi',
				'command not found',
				'install the tools of the driver or mend the PATH of this route',
			);
		const notes = matrix.split('\n').filter(line => line.trim() !== '');
		const trouble = status === 0 ? null : troubleOf({status, notes, moduleVersion: '', nodes: []});
		if (trouble) throw trouble;
		return parseTopology(matrix);
	},
};
