import { bytesToHex } from '@purser/protocol'
import type { Deps } from '../ctx.ts'
import { startLoop } from '../work/loop.ts'
import {
  insertShares,
  type Lease,
  type LeaseSet,
  readNextEnd,
  releaseLeases,
  renewLeases,
  type Share,
  takeLeases,
} from './store.ts'

export interface LeaseOptions {
  readonly deps: Pick<Deps, 'db' | 'random' | 'log'>
  readonly shares: readonly Share[]
  /** Milliseconds for which an unreachable holder keeps its shares. */
  readonly leaseMs: number
  /** Called when shares of the scope were taken. */
  readonly onTaken: (scope: string) => void
}

/** The shares that this process works on. */
export interface Leases {
  /**
   * The leases of the scope that this process believes it has: none once it could not renew them for their length, as after a pause of the
   * process. Writes under them are fenced by the rows.
   */
  leasesOf(scope: string): LeaseSet
  /** Releases them immediately. Work under them must have ended before. */
  stop(): Promise<void>
}

/** Delay after the end of another process's lease, so that the database's clock has passed it. */
const afterEndMs = 20
const failureMs = 500

/**
 * Takes every share without a holder, renews its leases every third of their length, and takes expired leases of other processes as soon as
 * they end. It does not depend on a failing connection of those processes. One statement renews all leases, however many shares there are.
 */
export function keepLeases({ deps, shares, leaseMs, onTaken }: LeaseOptions): Leases {
  const { db, log } = deps
  const ownerToken = bytesToHex(deps.random.bytes(16))
  let leases: readonly Lease[] = []
  let areRowsThere = false
  /** Until when the leases are certainly valid, by a monotonic clock. */
  let endsAtMs = 0

  const takeFree = async (): Promise<number> => {
    const others = shares.filter((share) => !leases.some((lease) => isSameShare(lease, share)))
    if (others.length === 0) return leaseMs
    const beganAtMs = performance.now()
    const taken = await takeLeases(db, others, { ownerToken, leaseMs })
    if (leases.length === 0) endsAtMs = beganAtMs + leaseMs
    leases = [...leases, ...taken]
    for (const scope of new Set(taken.map((lease) => lease.scope))) onTaken(scope)
    const waiting = others.filter((share) => !taken.some((lease) => isSameShare(lease, share)))
    const ms = waiting.length === 0 ? undefined : await readNextEnd(db, waiting)
    return ms === undefined ? leaseMs : Math.max(0, ms) + afterEndMs
  }
  const turn = async (): Promise<number> => {
    if (!areRowsThere) await insertShares(db, shares)
    areRowsThere = true
    if (leases.length > 0) {
      const beganAtMs = performance.now()
      const renewed = await renewLeases(db, leases, { ownerToken, leaseMs })
      endsAtMs = beganAtMs + leaseMs
      if (renewed.length < leases.length) log.warn({ lost: leases.length - renewed.length }, 'leases were lost')
      leases = renewed
    }
    return takeFree()
  }
  const loop = startLoop({
    name: 'leases',
    // Every run renews them: as traces they would hide the others.
    isTraced: false,
    everyMs: leaseMs / 3,
    failureMs: Math.min(failureMs, leaseMs / 3),
    log,
    run: async () => Math.min(await turn(), leaseMs / 3),
  })
  return {
    leasesOf(scope) {
      const current = performance.now() < endsAtMs ? leases.filter((lease) => lease.scope === scope) : []
      return { scope, ownerToken, leaseMs, leases: current }
    },
    async stop() {
      await loop.stop()
      const last = leases
      leases = []
      if (last.length === 0) return
      await releaseLeases(db, last, ownerToken).catch((error: unknown) =>
        log.warn({ err: error }, 'leases were not released; they end by themselves'),
      )
    },
  }
}

function isSameShare(left: Share, right: Share): boolean {
  return left.scope === right.scope && left.shard === right.shard
}
