import type { Network } from '@purser/protocol'
import { admit, park, pickTurn, planTransaction } from './batch.ts'
import { conclude } from './ending.ts'
import type { Trial } from './forms/form.ts'
import { tryAlone } from './forms/index.ts'
import { purposeOf, type RelayerParts } from './parts.ts'
import type { FailedRelay, Relay } from './port.ts'
import { moveBack } from './queue-store.ts'
import { listWaiting, lockWaiting, postpone, setToCheck } from './store.ts'

/** Relays that are tried in one turn at most; those that the chain refuses take no place in flight. */
const triedMax = 8

/**
 * One turn of relays that travel alone: signers with code, permits, and everything that a transaction did not carry before. Each is tried on
 * the chain first, by itself, and a read that fails postpones it alone. Answers whether there was anything.
 */
export async function sendAlone(parts: RelayerParts, network: Network): Promise<boolean> {
  const { ctx } = parts
  const { lanes, settlerAddress } = ctx
  const { alone: open } = await lanes.openCounts(ctx.db, network, settlerAddress)
  const free = lanes.slots.alone - open
  if (free <= 0) return false
  const turn = await pickTurn(parts, network, { alone: true, most: triedMax, open: open / lanes.slots.alone })
  if (turn.relayIds.length > 0) {
    await lanes.prepare(network, settlerAddress)
    const relays = await listWaiting(ctx.db, turn.relayIds)
    const tried = await Promise.all(
      relays.map(async (relay) => ({ relay, trial: await tryOne(parts, network, relay) })),
    )
    await act(parts, network, { tried, free })
    await ctx.db.tx((tx) => moveBack(tx, turn.servedQueues, turn.servedTurns))
  }
  await park(parts, turn)
  return turn.relayIds.length > 0
}

type Tried = { readonly relay: Relay; readonly trial: Trial | 'unknown' }

function tryOne({ ctx }: RelayerParts, network: Network, relay: Relay): Promise<Tried['trial']> {
  return tryAlone(ctx.chains.on(network), relay.payload, ctx.settlerAddress).catch((error: unknown) => {
    ctx.log.warn({ err: error, network: network.name, relayId: String(relay.id) }, 'a relay could not be tried')
    return 'unknown' as const
  })
}

/** Does with each what its trial says. As many as there are free slots are sent; the rest keep their place in the queue. */
async function act(
  parts: RelayerParts,
  network: Network,
  { tried, free }: { readonly tried: readonly Tried[]; readonly free: number },
): Promise<void> {
  const refusals = tried.flatMap(({ relay, trial }) => (typeof trial === 'string' ? [] : [{ relay, fault: trial }]))
  const [ending, waiting] = [refusals.filter(endsNow(parts)), refusals.filter((one) => !endsNow(parts)(one))]
  const idsOf = (trial: Tried['trial']) => tried.filter((one) => one.trial === trial).map(({ relay }) => relay.id)
  await conclude(parts, ending)
  await setToCheck(parts.ctx.db, idsOf('used'), parts.timings.backoff)
  await postpone(parts.ctx.db, [...idsOf('unknown'), ...waiting.map(({ relay }) => relay.id)], parts.timings.backoff)
  for (const relayId of idsOf('taken').slice(0, free)) await planOne(parts, network, relayId)
}

function endsNow(parts: RelayerParts) {
  return ({ relay }: FailedRelay): boolean => purposeOf(parts, relay.purpose).refusal === 'fail'
}

async function planOne(parts: RelayerParts, network: Network, relayId: bigint): Promise<void> {
  const refused = await parts.ctx.db.tx(async (tx) => {
    const { sent, refused } = await admit(parts, tx, await lockWaiting(tx, [relayId]))
    if (sent.length > 0) await planTransaction(parts, tx, network, { slot: 'alone', relays: sent })
    return refused
  })
  await conclude(parts, refused)
}
