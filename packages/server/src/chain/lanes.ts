import type { Network } from '@purser/protocol'
import type { Deps } from '../platform/ctx.ts'
import { pause } from '../platform/work/runner.ts'
import { passLane, resumeLane } from './lane.ts'
import { pollMsOf, waitForWork } from './lane-pace.ts'
import { planOne } from './lane-plan.ts'
import { countUnmined, findNextNonce, insertLane } from './lane-store.ts'
import type { Chains, LaneHandler, Lanes, Signer } from './port.ts'

const idlePollMs = 250
const leaderRetryMs = 2_000
const failureMs = 500

export interface LanesOptions {
  readonly deps: Pick<Deps, 'db' | 'clock' | 'random' | 'log' | 'metrics'>
  readonly chains: Chains
  readonly signer: Signer
  readonly openMax?: number
}

/**
 * The lanes of one account, one per configured network. Of all processes that may work, one at a time drives a lane,
 * held by a lock that dies with it; should two ever overlap, the rows still let each step happen once.
 */
export function createLanes(options: LanesOptions): Lanes {
  const { deps, chains, signer } = options
  const stopping = new AbortController()
  const wakers = new Map<string, PromiseWithResolvers<void>>()
  const prepared = new Set<string>()
  const keyOf = (network: Network) => ({ network: network.name, sender: signer.address })
  let loops: Promise<void>[] = []

  const nudge = (network: Network): void => {
    wakers.get(network.name)?.resolve()
    wakers.set(network.name, Promise.withResolvers())
  }
  const drive = async (
    network: Network,
    handlers: ReadonlyMap<string, LaneHandler>,
    lost: AbortSignal,
  ): Promise<void> => {
    const parts = {
      deps,
      chain: chains.on(network),
      signerOf: () => signer,
      handlers,
      usedSince: new Map<string, number>(),
    }
    let resumed = false
    while (!stopping.signal.aborted && !lost.aborted) {
      const waker = wakers.get(network.name)
      try {
        if (!resumed) await resumeLane(parts, keyOf(network))
        resumed = true
        const open = await passLane(parts, keyOf(network))
        await waitForWork(
          waker?.promise ?? Promise.resolve(),
          open > 0 ? pollMsOf(network) : idlePollMs,
          stopping.signal,
        )
      } catch (error) {
        deps.log.warn({ err: error, network: network.name }, 'a lane could not go on; it will be tried again')
        await pause(failureMs, stopping.signal)
      }
    }
  }
  const lead = async (network: Network, handlers: ReadonlyMap<string, LaneHandler>): Promise<void> => {
    while (!stopping.signal.aborted) {
      await deps.db
        .exclusively(`lane:${network.name}`, (lost) => drive(network, handlers, lost))
        .catch((error: unknown) => deps.log.warn({ err: error, network: network.name }, 'a lane lost its lock'))
      await pause(leaderRetryMs, stopping.signal)
    }
  }
  return {
    address: signer.address,
    networks: chains.configured.filter((network) => network.settlesEip3009),
    openMax: options.openMax ?? 8,
    async prepare(network) {
      if (prepared.has(network.name)) return
      if ((await findNextNonce(deps.db, keyOf(network))) === undefined) {
        await insertLane(deps.db, keyOf(network), await chains.on(network).transactionCount(signer.address, 'pending'))
      }
      prepared.add(network.name)
    },
    plan: (tx, planned) => planOne(deps, tx, { lane: keyOf(planned.network), planned }),
    openCount: (network) => countUnmined(deps.db, keyOf(network)),
    nudge,
    start(handlers) {
      const byPurpose = new Map(handlers.map((handler) => [handler.purpose, handler]))
      for (const network of this.networks) wakers.set(network.name, Promise.withResolvers())
      loops = this.networks.map((network) => lead(network, byPurpose))
    },
    async stop() {
      stopping.abort()
      await Promise.all(loops)
    },
  }
}
