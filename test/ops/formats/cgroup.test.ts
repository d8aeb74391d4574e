import {describe, expect, it} from 'vitest';
import {ownerOf} from '../../../src/ops/formats/cgroup.ts';

const HEX = '0123456789abcdef'.repeat(4);

describe('who keeps a process, from its cgroup', () => {
	it.each([
		['0::/system.slice/vllm-x.service', {kind: 'unit', unit: 'vllm-x.service'}],
		['12:pids:/a\n1:name=systemd:/system.slice/vllm-x.service\n0::/other', {kind: 'unit', unit: 'vllm-x.service'}],
		['1:name=systemd:/\n0::/system.slice/vllm-x.service', {kind: 'unit', unit: 'vllm-x.service'}],
		['1:name=systemd:/\n', {kind: 'none'}],
		['0::/system.slice/system-inst.slice/inst@3.service', {kind: 'unit', unit: 'inst@3.service'}],
		['0::/system.slice/inst@a\\x2db.service', {kind: 'unit', unit: 'inst@a\\x2db.service'}],
		['0::/system.slice/x.service/payload', {kind: 'unit', unit: 'x.service'}],
		['0::/system.slice/run-r1234.service', {kind: 'unit', unit: 'run-r1234.service'}],
		['0::/init.scope', {kind: 'unit', unit: 'init.scope'}],
		['0::/user.slice/user-0.slice/session-12.scope', {kind: 'session', session: '12'}],
		[
			'0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.service',
			{kind: 'user-unit', unit: 'x.service', uid: 1000},
		],
		[
			'0::/user.slice/user-0.slice/user@0.service/tmux-spawn-1a2b.scope',
			{kind: 'user-unit', unit: 'tmux-spawn-1a2b.scope', uid: 0},
		],
		[`0::/system.slice/docker-${HEX}.scope`, {kind: 'container', engine: 'docker', id: '0123456789ab'}],
		[`4:memory:/docker/${HEX}\n0::/docker/${HEX}`, {kind: 'container', engine: 'docker', id: '0123456789ab'}],
		[`0::/machine.slice/libpod-${HEX}.scope`, {kind: 'container', engine: 'podman', id: '0123456789ab'}],
		[
			`0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-${HEX}.scope`,
			{kind: 'container', engine: 'containerd', id: '0123456789ab'},
		],
		[`0::/kubepods/burstable/pod1/${HEX}`, {kind: 'container', engine: 'kubernetes', id: '0123456789ab'}],
		['0::/lxc.payload.129/system.slice/x.service', {kind: 'guest', guest: '129', unit: 'x.service'}],
		['0::/lxc/129/ns/system.slice/x.service', {kind: 'guest', guest: '129', unit: 'x.service'}],
		['0::/lxc/129/ns', {kind: 'guest', guest: '129', unit: null}],
		['0::/lxc.monitor.129', {kind: 'container', engine: 'lxc-monitor', id: '129'}],
		['0::/qemu.slice/113.scope', {kind: 'guest', guest: '113', unit: null}],
		['0::/machine.slice/machine-qemu\\x2d1\\x2dbox.scope', {kind: 'guest', guest: 'qemu-1-box', unit: null}],
		['0::/', {kind: 'none'}],
		['0::/../../system.slice', {kind: 'unknown'}],
		['', {kind: 'unknown'}],
	])('%s', (text, owner) => {
		expect(ownerOf(text)).toEqual(owner);
	});
});
