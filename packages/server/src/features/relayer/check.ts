import type { Network } from '@purser/protocol'
import type { Beside } from '../../platform/job.ts'
import { type Conclusion, conclude } from './ending.ts'
import { faultOf, findUse, nonceStates } from './forms/index.ts'
import { purposeOf, type RelayerParts } from './parts.ts'
import { releaseRelays } from './queue-store.ts'
import { type CheckRow, stopChecks, takeChecks } from './store.ts'

/** Most nonces in one query to a quorum. */
const checkedMax = 500
/** Most attempts of a relay that the chain would accept and whose transactions did not carry it. */
const attemptsMax = 3

/**
 * Reads the chain for relays that a transaction did not carry, that have expired, or that somebody else may have sent.
 * A quorum reports each nonce's state at depth, and exactly the relays with such a report are ended. Every relay was
 * postponed before, so that one without a report blocks no others. Searches for the transactions of used nonces may
 * take long, so they are passed to `beside` and continue after the return. Returns whether there may be more.
 */
export async function checkRelays(parts: RelayerParts, network: Network, beside: Beside): Promise<boolean> {
  const { ctx, timings, checkStarts: starts } = parts
  const rows = await takeChecks(ctx.db, network.name, { most: checkedMax, starts, ...timings.backoff })
  if (rows.length === 0) return false
  const chain = ctx.chains.on(network)
  const states = await nonceStates(
    chain,
    rows.map(({ payload }) => payload),
  )
  const inState = (state: string) => rows.filter((_, index) => states[index] === state)
  const [open, expired, used] = [inState('open'), inState('expired'), inState('used')]
  await release(parts, open)
  const over = await expiredForGood(parts, network, expired.filter(isUnended))
  await conclude(parts, [...exhausted(parts, open), ...over.map(asExpired)])
  await stopChecks(
    ctx.db,
    [...open.filter(isWatchedEnough), ...expired.filter((row) => !isUnended(row))].map(({ id }) => id),
  )
  beside(parts.search(network.name, used, (relay) => searchUse(parts, network, relay)))
  return rows.length === checkedMax
}

/** Returns those that no reorganization can make valid again, where their purpose waits for that; the others are checked again later. */
async function expiredForGood(
  parts: RelayerParts,
  network: Network,
  expired: readonly CheckRow[],
): Promise<readonly CheckRow[]> {
  const isLater = ({ purpose }: CheckRow) => purposeOf(parts, purpose).expiry === 'final'
  const later = expired.filter(isLater)
  const payloads = later.map(({ payload }) => payload)
  const states = await nonceStates(parts.ctx.chains.on(network), payloads, network.depositFinality)
  return [...expired.filter((row) => !isLater(row)), ...later.filter((_, index) => states[index] === 'expired')]
}

/** Returns the relays that came back from a transaction and were sent too often, or used more than their gas grant. */
function exhausted(parts: RelayerParts, open: readonly CheckRow[]): Conclusion[] {
  return open
    .filter((row) => isReturned(row) && row.attempts >= attemptsMax && purposeOf(parts, row.purpose).refusal === 'fail')
    .map((relay) => ({ relay, fault: faultOf(relay.payload, 'notCarried') }))
}

/** Makes relays that came back from a transaction due again: their nonces are unused at depth. */
async function release({ ctx }: RelayerParts, open: readonly CheckRow[]): Promise<void> {
  const again = open.filter((row) => isReturned(row) && row.attempts < attemptsMax)
  if (again.length > 0)
    await releaseRelays(
      ctx.db,
      again.map(({ id }) => id),
    )
}

function isReturned({ state, mayBeSent }: CheckRow): boolean {
  return state === 'waiting' && !mayBeSent
}

function isUnended({ state }: CheckRow): boolean {
  return state === 'waiting' || state === 'withdrawn' || state === 'watched'
}

/** Whether checks of the relay can end: a signature that is valid for years is not checked forever. */
function isWatchedEnough({ state, isPast }: CheckRow): boolean {
  return (state === 'failed' || state === 'withdrawn') && !isPast
}

function asExpired(relay: CheckRow): Conclusion {
  return { relay, fault: faultOf(relay.payload, 'expired') }
}

/** Does not reject: a search that failed is repeated by the relay's back-off. */
async function searchUse(parts: RelayerParts, network: Network, relay: CheckRow): Promise<void> {
  const { ctx } = parts
  try {
    const use = await findUse({ db: ctx.db, chain: ctx.chains.on(network) }, relay.payload, relay.createdAt)
    if (use.outcome === 'settled') {
      const { transactionHash, blockHash } = use
      await conclude(parts, [{ relay, transactionHash, blockHash, wei: 0n }])
    }
    if (use.outcome !== 'lost') return
    if (isUnended(relay)) await conclude(parts, [{ relay, fault: use.fault }])
    else await stopChecks(ctx.db, [relay.id])
  } catch (error) {
    ctx.log.warn({ err: error, network: network.name, relayId: String(relay.id) }, 'the use of a nonce was not found')
  }
}
