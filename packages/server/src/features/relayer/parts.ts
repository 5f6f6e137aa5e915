import type { Network } from '@purser/protocol'
import type { Tx } from '../../platform/db/db.ts'
import { inLockOrder } from '../../platform/db/lock-order.ts'
import type { ByOwner } from '../../platform/work/by-owner.ts'
import type { DueCursors } from '../plans/index.ts'
import type { FailedRelay, Relay, RelayPurpose, SettledRelay } from './port.ts'
import type { Ctx } from './ports.ts'
import { type Backoff, lockAsRead, markRelaysEnded, markSettled, postpone } from './store.ts'

type System = Omit<Ctx, 'tenant'>

export interface RelayTimings {
  /** Milliseconds for which a process that cannot be reached keeps its networks. */
  readonly leaseMs: number
  readonly backoff: Backoff
  /** Milliseconds for which a small batch waits for more while an earlier one is not in a block yet. */
  readonly batchMs: number
  /** A signature with less remaining time than this is not sent: it would only burn gas. */
  readonly timeLeftMs: number
}

/** Timings of a deployment whose leases last this long. */
export const relayTimings = (leaseMs: number): RelayTimings => ({
  leaseMs,
  backoff: { firstMs: 1_000, mostMs: 300_000 },
  batchMs: 600,
  timeLeftMs: 2_000,
})

/** The relayer's dependencies: chains, lanes, the settler's address and the timings come from outside, by `ctx` and here. */
export interface RelayerParts {
  readonly ctx: System
  /** The networks on which signatures are relayed. */
  readonly networks: readonly Network[]
  readonly purposes: ReadonlyMap<string, RelayPurpose>
  readonly timings: RelayTimings
  /** The position at which the next look-up of relays to check starts. */
  readonly checkCursors: DueCursors
  /** Limits the searches for the transactions of used nonces. */
  readonly search: ByOwner
}

export function purposeOf({ purposes }: Pick<RelayerParts, 'purposes'>, name: string): RelayPurpose {
  const purpose = purposes.get(name)
  if (purpose === undefined) throw new Error(`no feature registered the relay purpose ${name}`)
  return purpose
}

/** The outcome of a relay that is in no transaction. The chain or its expiry decides it. */
export type Conclusion = SettledRelay | FailedRelay

/**
 * Ends relays that were read outside a transaction, in one transaction per organisation and purpose. A relay that changed since
 * it was read is skipped. If an organisation's rows cannot be written, the others are still concluded.
 */
export async function conclude(parts: RelayerParts, conclusions: readonly Conclusion[]): Promise<void> {
  const groups = Map.groupBy(conclusions, ({ relay }) => `${relay.organisationId} ${relay.purpose}`)
  for (const [, group] of inLockOrder(groups)) {
    const [first] = group
    if (first === undefined) continue
    await concludeGroup(parts, purposeOf(parts, first.relay.purpose), group).catch(async (error: unknown) => {
      const { organisationId, purpose } = first.relay
      parts.ctx.log.error({ err: error, organisationId, purpose }, 'relays could not be ended; retrying')
      await postpone(
        parts.ctx.db,
        group.map(({ relay }) => relay.id),
        parts.timings.backoff,
      )
    })
  }
}

function concludeGroup(parts: RelayerParts, purpose: RelayPurpose, group: readonly Conclusion[]): Promise<void> {
  return parts.ctx.db.tx(async (tx) => {
    const unchanged = await lockAsRead(
      tx,
      group.map(({ relay }) => relay),
    )
    const own = group.filter(({ relay }) => unchanged.has(relay.id))
    if (own.length === 0) return
    await lockSubjects(
      tx,
      purpose,
      own.map(({ relay }) => relay),
    )
    await settle(
      tx,
      purpose,
      own.flatMap((one) => ('fault' in one ? [] : [one])),
    )
    await failAll(
      tx,
      purpose,
      own.flatMap((one) => ('fault' in one ? [one] : [])),
    )
  })
}

export function lockSubjects(tx: Tx, purpose: RelayPurpose, relays: readonly Relay[]): Promise<void> {
  return purpose.lock(tx, relays.map(({ subjectId }) => subjectId).toSorted())
}

/** Settles relays whose money is on chain in final blocks. A failed relay can become settled too: the chain decides. */
async function settle(tx: Tx, purpose: RelayPurpose, settled: readonly SettledRelay[]): Promise<void> {
  const moved = await markSettled(
    tx,
    settled.map(({ relay }) => relay.id),
  )
  const own = settled.filter(({ relay }) => moved.has(relay.id))
  if (own.length > 0) await purpose.onSettled(tx, own)
}

async function failAll(tx: Tx, purpose: RelayPurpose, failed: readonly FailedRelay[]): Promise<void> {
  const isExpired = ({ fault }: FailedRelay) => fault.kind === 'expired'
  const moved = new Set([
    ...(await markRelaysEnded(tx, idsOf(failed.filter(isExpired)), 'expired')),
    ...(await markRelaysEnded(tx, idsOf(failed.filter((one) => !isExpired(one))), 'failed')),
  ])
  const own = failed.filter(({ relay }) => moved.has(relay.id))
  if (own.length > 0) await purpose.onFailed(tx, own)
}

function idsOf(failed: readonly FailedRelay[]): readonly bigint[] {
  return failed.map(({ relay }) => relay.id)
}
