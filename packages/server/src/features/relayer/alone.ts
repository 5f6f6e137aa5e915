import type { Network } from '@purser/protocol'
import { admit, endTurn, pickTurn, planTransaction } from './batch.ts'
import { conclude } from './ending.ts'
import type { Dealt } from './fairness.ts'
import type { Trial } from './forms/form.ts'
import { tryAlone } from './forms/index.ts'
import { purposeOf, type RelayerParts } from './parts.ts'
import type { FailedRelay, Relay } from './port.ts'
import { listWaiting, lockWaiting, postpone, setToCheck } from './store.ts'

/** Most relays that are tried in one turn; those that the chain refuses take no slot. */
const triedMax = 8

/**
 * Runs one turn of relays that are sent alone: signers with code, permits, and everything that a transaction did not
 * carry before. Each is simulated on the chain by itself, and a failure postpones only that relay. Those that the chain
 * accepts are sent in the order of the turn, as many as there are free slots; the others keep their place in front.
 * Returns whether there was anything to send.
 */
export async function sendAlone(parts: RelayerParts, network: Network): Promise<boolean> {
  const { ctx } = parts
  const { lanes, settlerAddress } = ctx
  const { alone: open } = await lanes.openCounts(ctx.db, network, settlerAddress)
  const free = lanes.slots.alone - open
  if (free <= 0) return false
  const turn = await pickTurn(parts, network, { alone: true, most: triedMax, open: open / lanes.slots.alone })
  if (turn.dealt.length === 0) {
    await endTurn(parts, turn, [])
    return false
  }
  await lanes.prepare(network, settlerAddress)
  const waiting = await listWaiting(
    ctx.db,
    turn.dealt.map(({ relayId }) => relayId),
  )
  const tried = await Promise.all(
    turn.dealt.map(async (dealt) => {
      const relay = waiting.find(({ id }) => id === dealt.relayId)
      return { dealt, relay, trial: relay === undefined ? undefined : await tryOne(parts, network, relay) }
    }),
  )
  const [sent, left] = splitAt(
    tried.filter(({ trial }) => trial === 'taken'),
    free,
  )
  const served = tried.filter((one) => !left.includes(one)).map(({ dealt }) => dealt)
  await endTrials(
    parts,
    tried.flatMap(({ relay, trial }) => (relay === undefined || trial === undefined ? [] : [{ relay, trial }])),
  )
  for (const { dealt } of sent) await planOne(parts, network, dealt)
  await endTurn(parts, turn, served)
  return true
}

type Tried = { readonly relay: Relay; readonly trial: Trial | 'unknown' }

function tryOne({ ctx }: RelayerParts, network: Network, relay: Relay): Promise<Tried['trial']> {
  return tryAlone(ctx.chains.on(network), relay.payload, ctx.settlerAddress).catch((error: unknown) => {
    ctx.log.warn({ err: error, network: network.name, relayId: String(relay.id) }, 'a relay could not be tried')
    return 'unknown' as const
  })
}

/** Ends or postpones the relays that the chain refused, by the results of their trials. */
async function endTrials(parts: RelayerParts, tried: readonly Tried[]): Promise<void> {
  const { ctx, timings } = parts
  const refusals = tried.flatMap(({ relay, trial }) => (typeof trial === 'string' ? [] : [{ relay, fault: trial }]))
  const idsOf = (trial: Tried['trial']) => tried.filter((one) => one.trial === trial).map(({ relay }) => relay.id)
  await conclude(parts, refusals.filter(endsNow(parts)))
  await setToCheck(ctx.db, idsOf('used'), timings.backoff)
  const waiting = refusals.filter((one) => !endsNow(parts)(one)).map(({ relay }) => relay.id)
  await postpone(ctx.db, [...idsOf('unknown'), ...waiting], timings.backoff)
}

function endsNow(parts: RelayerParts) {
  return ({ relay }: FailedRelay): boolean => purposeOf(parts, relay.purpose).refusal === 'fail'
}

/** Plans the transaction of one relay; a failure postpones only that relay. */
async function planOne(parts: RelayerParts, network: Network, { relayId }: Dealt): Promise<void> {
  const { ctx, timings } = parts
  const planning = ctx.db.tx(async (tx) => {
    const { sent, refused } = await admit(parts, tx, await lockWaiting(tx, [relayId]))
    if (sent.length > 0) await planTransaction(parts, tx, network, { slot: 'alone', relays: sent })
    return refused
  })
  const refused = await planning.catch(async (error: unknown) => {
    ctx.log.error({ err: error, network: network.name, relayId: String(relayId) }, 'a relay could not be planned')
    await postpone(ctx.db, [relayId], timings.backoff)
    return []
  })
  await conclude(parts, refused)
}

function splitAt<T>(items: readonly T[], count: number): [readonly T[], readonly T[]] {
  return [items.slice(0, count), items.slice(count)]
}
