import type {RouteConfig, Target} from '../target.ts';
import {type Desk, openDesk} from './desk.ts';
import {type Host, type HostOptions, openHost} from './host.ts';
import {localTransport} from './local.ts';
import {guestIn} from './prefix.ts';
import type {Asker} from './question.ts';
import {sshTransport} from './ssh.ts';
import type {Operator} from './ssh-settings.ts';
import {throughTransport} from './through.ts';
import {SYSTEM_ENVIRONMENT, type Transport} from './transport.ts';

export type HostOfOptions = Omit<HostOptions, 'routes'> & {
	/** Who is asked for passphrases, passwords and about host keys; null or none: nobody is there. */
	readonly asker?: Asker | null;
};

/** The host of a target: its routes made of the three kinds of transport, with one desk. Nothing is opened yet. */
export function hostOf(target: Target, operator: Operator, {asker = null, ...options}: HostOfOptions): Host {
	const desk = openDesk(asker);
	const host = openHost({...options, routes: target.routes.map(route => transportsOf(route, operator, desk))});
	let trying: Promise<void> | null = null;
	function reconnect(): Promise<void> {
		trying ??= desk.again(host.reconnect).finally(() => {
			trying = null;
		});
		return trying;
	}
	return {
		...host,
		reconnect,
		get status() {
			return host.status;
		},
	};
}

function transportsOf(
	route: RouteConfig,
	operator: Operator,
	desk: Desk,
): {transport: Transport; outer: Transport | null} {
	const near = (environment: Transport['environment']) =>
		route.ssh === null ? localTransport(environment) : sshTransport(route, environment, operator, {desk});
	if (!route.through) return {transport: near(route.environment), outer: null};
	const outer = near(SYSTEM_ENVIRONMENT);
	const transport = throughTransport(outer, route.through, route.environment);
	return {transport, outer: guestIn(route.through) ? outer : null};
}
