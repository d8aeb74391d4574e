import {expect, it} from 'vitest';
import {autostart} from '../../../src/ops/probes/autostart.ts';
import {contextOf, look, makeTree, pathWith} from './support.ts';

const ID = 'ab'.repeat(32);

it('reads @reboot lines, rc.local and the restart policies of containers', async () => {
	const tree = makeTree({
		'etc/crontab': '# @reboot root /no\n@reboot root /opt/start.sh\n17 * * * * root run-parts /etc/cron.hourly\n',
		'etc/cron.d/llm': '  @reboot  llm python3 /opt/serve.py\n',
		'etc/rc.local': '#!/bin/sh -e\n/opt/by-hand &\nexit 0\n',
		'var/spool/cron/crontabs/root': '@reboot tmux new -d /root/run.sh\n',
		'bin/docker': `#!/bin/sh\ncase $1 in ps) echo ${ID} ;; inspect) echo '${ID} always /vllm' ;; esac\n`,
	});
	const {chmodSync} = await import('node:fs');
	chmodSync(`${tree.root}/etc/rc.local`, 0o755);
	const facts = await look(autostart, contextOf(), {etc: `${tree.root}/etc`, path: pathWith(tree.root)});
	expect(facts).toEqual({
		lines: [
			{file: `${tree.root}/etc/crontab`, line: '@reboot root /opt/start.sh'},
			{file: `${tree.root}/etc/cron.d/llm`, line: '@reboot  llm python3 /opt/serve.py'},
			{
				file: `${tree.root}/etc/../var/spool/cron/crontabs/root`.replace('/etc/../', '/'),
				line: '@reboot tmux new -d /root/run.sh',
			},
			{file: `${tree.root}/etc/rc.local`, line: '/opt/by-hand &'},
		],
		containers: [{id: ID, name: 'vllm', policy: 'always'}],
	});
	tree.remove();
});

it('knows nothing of containers where no engine answers, and none where one says so', async () => {
	const silent = makeTree({'bin/docker': '#!/bin/sh\nexit 1\n', 'etc/x': ''});
	const roots = {etc: `${silent.root}/etc`, path: pathWith(silent.root)};
	expect(await look(autostart, contextOf(), roots)).toEqual({lines: [], containers: null});
	silent.remove();
	const empty = makeTree({'bin/docker': '#!/bin/sh\nexit 0\n', 'etc/x': ''});
	expect(await look(autostart, contextOf(), {...roots, path: pathWith(empty.root), etc: `${empty.root}/etc`})).toEqual({
		lines: [],
		containers: [],
	});
	empty.remove();
});
