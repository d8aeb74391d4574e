import {fresh} from '../facts.ts';
import {hasNoCards} from '../no-cards.ts';
import {claimsOf} from '../operations/claims.ts';
import {memoryIsBack} from '../probes/held-memory.ts';
import {bootVerdict, runState} from '../probes/service-verdicts.ts';
import {fail, failWhen, type PreflightCheck, unseen, warn} from './check.ts';
import {LINK_CHECK} from './link-check.ts';

/** Cards, who holds them, and who would take them again. */
export const CARD_CHECKS: readonly PreflightCheck[] = [
	{
		id: 'cards',
		says: 'every card answers',
		blocks: 'launch',
		mends: null,
		finds({facts, target}) {
			const gpus = fresh(facts.gpus);
			if (hasNoCards(facts, target)) return null;
			if (!gpus) return unseen('the cards are not known: the last look failed or has not come');
			const reset = gpus.cards.filter(card => card.needsReset);
			const few = target.expect.gpus !== null && gpus.cards.length < target.expect.gpus;
			return [
				...failWhen(gpus.lost.length > 0, `card lost: ${gpus.lost.map(card => card.busId).join(', ')}`),
				...failWhen(few, `${gpus.cards.length} of ${target.expect.gpus} cards answer`),
				...failWhen(reset.length > 0, `card ${reset.map(card => card.index).join(', ')} needs a reset`),
			];
		},
	},
	LINK_CHECK,
	{
		id: 'other-server',
		says: 'no other launch is alive',
		blocks: 'launch',
		mends: 'stop-server',
		finds({facts, target}) {
			if (!target.server) return null;
			const now = fresh(facts.server);
			if (!now) return unseen('the server and its port have not been seen yet, or the last look failed');
			return failWhen(now.process === 'alive', `a server is already running (pid ${now.record?.pid}, ${now.phase})`);
		},
	},
	{
		id: 'free',
		says: 'no process that may be ended holds a card, and memory is back',
		blocks: 'launch',
		mends: 'free-gpus',
		finds(situation) {
			const {facts, target} = situation;
			if (hasNoCards(facts, target)) return null;
			const claims = claimsOf(situation);
			const gpus = fresh(facts.gpus);
			if (!claims || !gpus) return unseen('who holds the cards is not known: the last look failed or has not come');
			if (fresh(facts.server)?.process === 'alive') return [];
			const holding = claims.filter(claim => claim.spared === null).length;
			if (holding > 0) return [fail(`${holding} process(es) hold the cards: free them first`)];
			const full = gpus.cards.filter(card => !memoryIsBack(card)).map(card => card.index);
			return full.length > 0 ? [warn(`memory in use on card ${full.join(', ')} with no process to be seen`)] : [];
		},
	},
	{
		id: 'services',
		says: 'no unwanted unit runs or comes back at boot',
		blocks: 'launch',
		mends: 'stop-service',
		finds({facts, target}) {
			const services = fresh(facts.services);
			if (!services)
				return target.unwanted.length > 0
					? unseen('the services have not been seen yet, or the last look failed')
					: null;
			const unwanted = services.units.filter(unit => unit.unwanted);
			const running = unwanted.filter(unit => runState(unit) !== 'stopped').map(({unit}) => unit);
			const back = unwanted.filter(unit => bootVerdict(unit).comesBack !== 'no').map(({unit}) => unit);
			return [
				...failWhen(running.length > 0, `${running.join(', ')} is not stopped`),
				...back.map(unit => warn(`${unit} may come back at the next boot`)),
			];
		},
	},
	{
		id: 'port',
		says: 'the port is free',
		blocks: 'launch',
		mends: null,
		finds({facts, target}) {
			const now = fresh(facts.server);
			if (!target.server || !now) return null;
			if (now.process === 'alive') return [];
			const {portOwner} = now;
			if (!portOwner.known) return [warn(`who listens on port ${target.server.port} is not known: ${portOwner.why}`)];
			const owner = portOwner.value;
			return failWhen(
				owner !== null,
				`port ${target.server.port} is taken by ${owner?.name} (pid ${owner?.pid ?? 'unknown'})`,
			);
		},
	},
];
