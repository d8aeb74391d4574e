import type {Owner} from '../probes/processes.ts';

/**
 * Who keeps a process, from the text of /proc/PID/cgroup (v2, v1 or both). `none`: the root group, so no unit, or one that a
 * cgroup namespace hides; `unknown`: outside the reader's namespace, or no text. Unit names stay as systemd writes them
 * (`\x2d` and all): that is what systemctl takes. Container ids are the 12 digits that every engine takes.
 */
export function ownerOf(text: string): Owner {
	const path = groupPath(text);
	if (path === null || path.startsWith('/..')) return {kind: 'unknown'};
	const parts = path.split('/').filter(part => part !== '');
	return guestOf(parts) ?? containerOf(parts) ?? machineOf(parts) ?? unitOf(parts);
}

/** The group that systemd keeps: its own v1 hierarchy where there is one that it uses, else the v2 line. */
function groupPath(text: string): string | null {
	let unified: string | null = null;
	let named: string | null = null;
	for (const line of text.split('\n')) {
		const match = /^\d+:([^:]*):(\/.*)$/.exec(line);
		if (!match) continue;
		const [, controllers = '', path = ''] = match;
		if (controllers.split(',').includes('name=systemd')) named = path;
		if (controllers === '') unified = path;
	}
	return named === null || (named === '/' && unified !== null) ? unified : named;
}

/** `/lxc.payload.129/…`, `/lxc/129/ns/…`: a guest seen from its host; what follows is the guest's own tree. */
function guestOf(parts: readonly string[]): Owner | null {
	const monitor = /^lxc\.monitor\.(.+)$/.exec(parts[0] ?? '') ?? (parts[0] === 'lxc.monitor' ? [null, parts[1]] : null);
	if (monitor?.[1]) return {kind: 'container', engine: 'lxc-monitor', id: monitor[1]};
	const payload = /^lxc\.payload\.(.+)$/.exec(parts[0] ?? '')?.[1];
	if (payload) return {kind: 'guest', guest: payload, unit: innerUnit(parts.slice(1))};
	if (parts[0] !== 'lxc' || !parts[1]) return null;
	return {kind: 'guest', guest: parts[1], unit: innerUnit(parts.slice(parts[2] === 'ns' ? 3 : 2))};
}

function innerUnit(parts: readonly string[]): string | null {
	const owner = unitOf(parts);
	if (owner.kind === 'unit' || owner.kind === 'user-unit') return owner.unit;
	return owner.kind === 'session' ? `session-${owner.session}.scope` : null;
}

const CONTAINER_SCOPE = /^(docker|libpod|cri-containerd|crio|containerd|nerdctl)-([0-9a-f]{12,64})\.scope$/;
const ENGINES: Readonly<Record<string, string>> = {
	libpod: 'podman',
	'cri-containerd': 'containerd',
	nerdctl: 'containerd',
};

function containerOf(parts: readonly string[]): Owner | null {
	for (const [index, part] of parts.entries()) {
		const scope = CONTAINER_SCOPE.exec(part);
		if (scope) {
			const [, engine = '', id = ''] = scope;
			return {kind: 'container', engine: ENGINES[engine] ?? engine, id: id.slice(0, 12)};
		}
		const before = parts[index - 1] ?? '';
		if (!/^[0-9a-f]{12,64}$/.test(part)) continue;
		if (before === 'docker') return {kind: 'container', engine: 'docker', id: part.slice(0, 12)};
		if (before === 'libpod_parent') return {kind: 'container', engine: 'podman', id: part.slice(0, 12)};
		if (parts.some(name => name.startsWith('kubepods')))
			return {kind: 'container', engine: 'kubernetes', id: part.slice(0, 12)};
	}
	return null;
}

/** `/qemu.slice/113.scope`, `/machine.slice/machine-NAME.scope`: a virtual machine or nspawn guest of this host. */
function machineOf(parts: readonly string[]): Owner | null {
	const [slice, name = ''] = parts;
	if (slice === 'qemu.slice') return {kind: 'guest', guest: name.replace(/\.scope$/, ''), unit: null};
	if (slice !== 'machine.slice' || name === '') return null;
	const guest = name.replace(/^(machine-|systemd-nspawn@)/, '').replace(/\.(scope|service)$/, '');
	return {kind: 'guest', guest: guest.replaceAll('\\x2d', '-'), unit: null};
}

function unitOf(parts: readonly string[]): Owner {
	const manager = parts.findIndex(part => /^user@\d+\.service$/.test(part));
	if (manager >= 0) {
		const uid = Number(/\d+/.exec(parts[manager] ?? '')?.[0]);
		const unit = parts.slice(manager + 1).find(isUnit);
		return unit ? {kind: 'user-unit', unit, uid} : {kind: 'unit', unit: parts[manager] ?? ''};
	}
	const unit = parts.find(isUnit);
	if (!unit) return {kind: 'none'};
	const session = /^session-(.+)\.scope$/.exec(unit)?.[1];
	return session && parts[0] === 'user.slice' ? {kind: 'session', session} : {kind: 'unit', unit};
}

const isUnit = (part: string) => /\.(service|scope|socket|mount|swap)$/.test(part);
