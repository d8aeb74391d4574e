import type {RouteConfig, Target} from '../target.ts';
import {type Host, type HostOptions, openHost} from './host.ts';
import {localTransport} from './local.ts';
import {sshTransport} from './ssh.ts';
import type {Operator} from './ssh-settings.ts';
import {throughTransport} from './through.ts';
import {SYSTEM_ENVIRONMENT, type Transport} from './transport.ts';

/** The host of a target: its routes made of the three kinds of transport. Nothing is opened yet. */
export function hostOf(target: Target, operator: Operator, options: Omit<HostOptions, 'routes'>): Host {
	return openHost({...options, routes: target.routes.map(route => transportsOf(route, operator))});
}

function transportsOf(route: RouteConfig, operator: Operator): {transport: Transport; outer: Transport | null} {
	const near = (environment: Transport['environment']) =>
		route.ssh === null ? localTransport(environment) : sshTransport(route, environment, operator);
	if (!route.through) return {transport: near(route.environment), outer: null};
	const outer = near(SYSTEM_ENVIRONMENT);
	return {transport: throughTransport(outer, route.through, route.environment), outer};
}
