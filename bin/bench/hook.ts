import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {HOOK_FILE, HOOK_TEXT} from '../../src/ops/hook/own.ts';
import {atMost, inTurn, say} from './cost.ts';
import {leastOf, pythonWith} from './python.ts';

/** 90 MB in the tree of four states: the mean of the samples that this was made for. */
const TOKENS = 2_745;
const WIDTH = 4_096;
const ROUNDS = 5;
const TURNS = 6;

/** From states in memory on: that they are finite is asked on the card, where they come from, and takes it no time. */
const STAGE = `
import shutil, torch, relight_hs
folder, layout, T, H = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(1)
writer = relight_hs.Writer({'dump_dir': folder + '/dumps', 'staging': folder + '/staging', 'layers': [2, 30, 58], 'layout': layout})
states = {name: torch.full((T, H), at + 1, dtype=torch.bfloat16) for at, name in enumerate(relight_hs.STATES)}
ids = torch.arange(T)
request = relight_hs.Request('relight-0-bench', 'relight-0-bench', 0, T, 0)
turns(sys.argv[5],
    lambda: writer._write_container(request, states, ids, writer._about(request, states, ids, 0)),
    lambda: [away(folder + '/staging/' + name) for name in os.listdir(folder + '/staging')])
`;

const SAVE = `
import torch
folder, T, H = sys.argv[1], int(sys.argv[3]), int(sys.argv[4])
path = folder + '/saved.pt'
torch.set_num_threads(1)
states = [torch.full((T, H), at + 1, dtype=torch.bfloat16) for at in range(4)]
sample = {'input_ids': torch.arange(T), 'loss_mask': torch.ones(T, dtype=torch.int64), 'hidden_states': states}
def save():
    assert not any(torch.any(torch.isnan(each)) for each in states)
    torch.save(sample, path)
turns(sys.argv[5], save, lambda: away(path))
`;

/** What a sample costs the inference process: a staged file of the hook, beside torch.save and torch.isnan of the same. */
export async function hook(): Promise<void> {
	const python = pythonWith('torch');
	if (!python) return say('hook: not measured, no python3 with torch here');
	const folder = mkdtempSync(join(tmpdir(), 'relight-bench-hook-'));
	try {
		writeFileSync(join(folder, HOOK_FILE), HOOK_TEXT);
		const turn = (program: string, layout: string) => () =>
			leastOf(python, [program, folder, layout, ...[TOKENS, WIDTH, TURNS].map(String)], {PYTHONPATH: folder});
		const costs = await inTurn(ROUNDS, {
			legacy: turn(STAGE, 'legacy'),
			// These lay states side by side, which copies all of them once more.
			specforge: turn(STAGE, 'specforge'),
			speculators: turn(STAGE, 'speculators'),
			save: turn(SAVE, 'legacy'),
		});
		const {legacy, specforge, speculators, save} = costs;
		const least = `least of ${ROUNDS} x ${TURNS}`;
		const others = `specforge ${specforge.cpuMs.toFixed(1)}, speculators ${speculators.cpuMs.toFixed(1)}`;
		say(`hook, staged file of a sample: legacy ${legacy.cpuMs.toFixed(1)} ms CPU, ${others}, ${least}`);
		const times = `${(save.cpuMs / legacy.cpuMs).toFixed(1)} times as much`;
		say(`torch.isnan and torch.save of the same tensors: ${save.cpuMs.toFixed(1)} ms CPU, ${times}, ${least}`);
		atMost('hook: CPU in the inference process, sample of 90 MB', legacy.cpuMs, 'ms', 25);
	} finally {
		rmSync(folder, {recursive: true, force: true});
	}
}
