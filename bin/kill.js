// `npm run kill -- N [SEED]`: kills extractor and server N times at random instants, with a resume after each.
import {spawnSync} from 'node:child_process';

const [kills = '500', seed = '7'] = process.argv.slice(2);
const {status} = spawnSync('npx', ['vitest', 'run', 'test/ops/extract/kill.test.ts'], {
	stdio: 'inherit',
	env: {...process.env, RELIGHT_KILLS: kills, RELIGHT_SEED: seed},
});
process.exit(status ?? 2);
