import {DEFINE_MARK, mark, readSections} from '../formats/sections.ts';
import type {Answer, Probe} from './probe.ts';

/**
 * What starts programs at boot beside units: `@reboot` lines of cron, lines of rc.local, and the restart policies of
 * containers. `containers` null: no engine answered, so nothing is known of them.
 */
export type AutostartFacts = {
	readonly lines: readonly BootLine[];
	readonly containers: readonly BootContainer[] | null;
};

export type BootLine = {readonly file: string; readonly line: string};

/** `policy` in the engine's words: `no`, `always`, `unless-stopped`, `on-failure`. */
export type BootContainer = {readonly id: string; readonly name: string; readonly policy: string};

const SECTIONS = ['cron', 'rc', 'containers'] as const;

/** Crontabs lie in /var/spool/cron on Red Hat's and in its `crontabs` on Debian's systems. Source: crontab(5), docker-inspect(1). */
export const autostart: Probe<AutostartFacts> = {
	id: 'autostart',
	lane: 'services',
	everyMs: 60_000,
	limitMs: 12_000,
	capBytes: 262_144,
	script: () =>
		[
			DEFINE_MARK,
			`${mark('cron')}; v="$ETC/../var/spool/cron"; grep -HsE '^[[:space:]]*@reboot' "$ETC/crontab" "$ETC"/cron.d/* "$v"/* "$v"/crontabs/* | head -n 100`,
			`${mark('rc')}; for f in "$ETC/rc.local" "$ETC/rc.d/rc.local"; do [ -x "$f" ] && grep -HsvE '^[[:space:]]*(#|exit|$)' "$f" | head -n 50; done`,
			`${mark('containers')}; for e in docker podman; do command -v $e >/dev/null || continue`,
			'i=$(timeout -k 1 4 $e ps -aq --no-trunc 2>/dev/null) || continue; echo known; [ -z "$i" ] || timeout -k 1 4 $e inspect -f \'{{.Id}} {{.HostConfig.RestartPolicy.Name}} {{.Name}}\' $i 2>/dev/null | head -n 200; done; true',
		].join('\n'),
	parse: parseAutostart,
};

function parseAutostart(answer: Answer): AutostartFacts {
	const sections = readSections('autostart', answer.stdout, SECTIONS);
	const told = sections.containers.split('\n').filter(line => line !== '');
	return {
		lines: `${sections.cron}\n${sections.rc}`.split('\n').flatMap(bootLine),
		containers: told.length === 0 ? null : told.flatMap(bootContainer),
	};
}

/** `/etc/cron.d/x:@reboot root python3 …`. */
function bootLine(text: string): readonly BootLine[] {
	const [, file, line] = /^(\/[^:]*):\s*(\S.*)$/.exec(text) ?? [];
	return file && line ? [{file: file.replace('/etc/../', '/'), line: line.trim()}] : [];
}

function bootContainer(text: string): readonly BootContainer[] {
	const [, id, policy, name] = /^([0-9a-f]{64}) (\S*) \/?(.*)$/.exec(text) ?? [];
	return id === undefined ? [] : [{id, name: name ?? '', policy: policy || 'no'}];
}
