import {quote, show} from '../command.ts';
import {bootVerdict, maskRefused} from '../probes/service-verdicts.ts';
import type {Service} from '../probes/services.ts';

/** How a unit is kept from coming back at boot, with the words why this way, and the way back. */
export type BootBlock = {
	readonly id: 'disable' | 'drop-in' | 'mask';
	readonly says: string;
	readonly script: string;
	readonly inverse: string;
};

/**
 * The gentlest way that holds; none when nothing brings the unit back. `disable` takes out links below /etc and nothing
 * else, and tells by no exit status: where links may also stand elsewhere, systemd is asked after it, and what is left is
 * blocked. `mask` is refused for files in /etc, and makes whatever requires the unit fail; there a
 * drop-in with a condition that does not hold lets every start succeed as skipped. `etc`: root of /etc on this route.
 */
export function bootBlocks(service: Service, etc: string): readonly BootBlock[] {
	const boot = bootVerdict(service);
	if (boot.comesBack !== 'yes') return [];
	const {unit, unitFileState, wantedBy, wantedOutside, requiredBy, triggeredBy} = service;
	const enabled = unitFileState === 'enabled' || unitFileState === 'alias';
	const beyond = [
		...wantedBy
			.filter(by => !enabled || wantedOutside.includes(by))
			.map(by => `a link from ${by} outside /etc wants it`),
		...requiredBy.map(by => `${by} requires it`),
		...triggeredBy.map(by => `${by} starts it`),
		...(unitFileState === 'generated' ? ['its unit file is generated at each boot'] : []),
	];
	const disable = {
		id: 'disable' as const,
		says: `take ${unit} out of the boot`,
		script: show(['systemctl', 'disable', '--', unit]),
		inverse: show(['systemctl', 'enable', '--', unit]),
	};
	if (beyond.length > 0) {
		const block = mayMask(service) ? mask(unit) : dropIn(unit, etc);
		const says = `${block.says}, since \`disable\` does not hold it: ${beyond.join(', ')}`;
		return enabled ? [disable, {...block, says}] : [{...block, says}];
	}
	// One name is that of the link that disable takes out. Of several, some may stand where nobody looked.
	if (wantedBy.length < 2) return [disable];
	const block = dropIn(unit, etc);
	return [
		disable,
		{
			...block,
			says: `where a link outside /etc still wants it, ${block.says}`,
			script: `w=$(systemctl show -p WantedBy -p RequiredBy -p UpheldBy -p TriggeredBy --value -- ${quote(unit)}) || exit\n[ -z "$w" ] || {\n${block.script}\n}`,
		},
	];
}

const mayMask = (service: Service): boolean =>
	maskRefused(service) === null &&
	service.requiredBy.length === 0 &&
	/^\/(usr\/)?lib\/systemd\/system\//.test(service.fragmentPath);

const mask = (unit: string): BootBlock => ({
	id: 'mask',
	says: `mask ${unit}`,
	script: show(['systemctl', 'mask', '--', unit]),
	inverse: show(['systemctl', 'unmask', '--', unit]),
});

/**
 * systemd reads the drop-ins of a unit below /etc wherever the unit's own file lies. It gets its name only once it is
 * whole: on a full disk an empty one would pass for a block.
 */
function dropIn(unit: string, etc: string): BootBlock {
	const directory = `${etc}/systemd/system/${unit}.d`;
	const file = quote(`${directory}/50-blocked.conf`);
	const part = quote(`${directory}/50-blocked.part`);
	return {
		id: 'drop-in',
		says: `block ${unit} with a drop-in whose condition does not hold`,
		script: [
			`mkdir -p -- ${quote(directory)} || exit`,
			`printf '[Unit]\\nConditionPathExists=%s\\n' ${quote(`${etc}/allow-${unit}`)} >${part} && mv -f -- ${part} ${file} || { rm -f -- ${part}; exit 1; }`,
			'systemctl daemon-reload',
		].join('\n'),
		inverse: `rm -f -- ${file}; systemctl daemon-reload`,
	};
}
