import type { Network } from '@purser/protocol'
import { relayerParts } from '../../src/boot.ts'
import { createChains } from '../../src/chain/chains.ts'
import { NetworkDriver } from '../../src/chain/lanes/driver.ts'
import { createLanes } from '../../src/chain/lanes/lanes.ts'
import { scopeOf, sharesOf } from '../../src/chain/lanes/shards.ts'
import type { Signer } from '../../src/chain/port.ts'
import { createRecorder, createSettlements, voidUnsettled } from '../../src/features/payments/index.ts'
import type { Settlements } from '../../src/features/payments/settle.ts'
import { passRelays, type RelayerParts, relayHandler } from '../../src/features/relayer/index.ts'
import { listForgotten, makeDue } from '../../src/features/relayer/queue-store.ts'
import { createWalletDirectory } from '../../src/features/wallets/receiving.ts'
import { signSweeps } from '../../src/features/wallets/sweep/sign.ts'
import type { Ctx, Deps, Tenant } from '../../src/platform/ctx.ts'
import type { Db } from '../../src/platform/db/db.ts'
import type { ApiKeyId } from '../../src/platform/ids.ts'
import { insertShares, type Lease, renewLeases, takeLeases } from '../../src/platform/leases/store.ts'
import type { Log } from '../../src/platform/log.ts'
import { forTenant, systemCtx } from '../../src/platform/work/runner.ts'
import type { Chance } from './chance.ts'
import { type Gate, gatedDb, type Life } from './gate.ts'
import { outboundTo, type SimNode } from './nodes.ts'

export const verifiedMsMax = 240_000
const leaseMs = 20_000
const forgottenMs = 30_000

/** What all processes share: the database, the nodes, the settler's key, and the rest of the service, which no settlement touches. */
export interface Ground {
  readonly deps: Deps
  readonly db: Db
  readonly network: Network
  readonly signer: Signer
  readonly nodes: readonly SimNode[]
  readonly gate: Gate
  readonly chance: Chance
  readonly log: Log
  nowMs(): number
}

/** A process of the service as it has just started. It forgets everything when it dies. */
export class SimProcess {
  readonly life: Life
  readonly deps: Deps
  readonly #relaying: RelayerParts
  readonly #driver: NetworkDriver
  readonly #network: Network
  readonly #ownerToken: string
  #leases: readonly Lease[] = []

  constructor(ground: Ground, name: string, clockAheadMs: number) {
    const { gate, network, signer, chance, log } = ground
    this.life = { name, isDead: false }
    this.#network = network
    this.#ownerToken = Buffer.from(chance.bytes(8)).toString('hex')
    const clock = { now: () => new Date(ground.nowMs() + clockAheadMs) }
    const db = gatedDb(ground.db, gate, this.life)
    const random = { bytes: chance.bytes }
    const outbound = outboundTo(ground.nodes, (doing) => gate.step(this.life, doing))
    const rpcUrls = { [network.name]: ground.nodes.map(({ url }) => url) }
    const chains = createChains({ outbound, clock, networks: [network], rpcUrls, rpcTimeoutMs: 1_000, log })
    const floor = { ...ground.deps, db, clock, random, log, chains }
    const signerOf = async () => signer
    const lanes = createLanes({ deps: floor, chains, signerOf })
    this.deps = {
      ...floor,
      lanes,
      settlerAddress: signer.address,
      recordPayment: createRecorder({ db }, { nanoUsdPerDayMax: 10n ** 15n, openPerPayerMax: 100, verifiedMsMax }),
      settlements: patient(
        createSettlements({ db, clock }, () => undefined),
        chance,
      ),
      receivingWallets: createWalletDirectory({ db }),
      deposits: allBooked,
      facilitatorWaitMs: 1,
      settleWaitMs: 0,
    }
    const parts = relayerParts(this.deps, leaseMs)
    // A small batch does not wait for company: the clock stands still within a pass.
    this.#relaying = { ...parts, timings: { ...parts.timings, gatherMs: 0 } }
    const handler = relayHandler(this.#relaying)
    this.#driver = new NetworkDriver({
      deps: floor,
      chains,
      network,
      signerOf,
      handlers: new Map([[handler.purpose, handler]]),
    })
  }

  /** As whoever holds a key of this tenant. */
  as(tenant: Tenant, apiKeyId: ApiKeyId): Ctx {
    return { ...forTenant(systemCtx(this.deps), tenant), actor: { kind: 'api-key', apiKeyId } }
  }

  async passRelays(): Promise<void> {
    await passRelays(this.#relaying, this.#network)
  }

  /** What a process does every some seconds: nodes that rested are called again. */
  async checkNodes(): Promise<void> {
    await this.deps.chains.check()
  }

  /** What a process does every half a minute; answers how many queues it had to put back. */
  async findForgotten(): Promise<number> {
    const forgotten = await listForgotten(this.deps.db, this.#network.name, forgottenMs)
    if (forgotten.length > 0) await makeDue(this.deps.db, forgotten)
    return forgotten.length
  }

  async turnLanes(): Promise<void> {
    const [db, holder] = [this.deps.db, { ownerToken: this.#ownerToken, leaseMs }]
    const shares = sharesOf(this.#network.name)
    const kept = this.#leases.length === 0 ? [] : await renewLeases(db, this.#leases, holder)
    const taken = kept.length === shares.length ? [] : await takeLeases(db, shares, holder)
    this.#leases = [...kept, ...taken]
    await this.#driver.turn({ scope: scopeOf(this.#network.name), ...holder, leases: this.#leases })
    await this.#driver.rest()
  }

  async signSweeps(): Promise<void> {
    await signSweeps.run(systemCtx(this.deps))
  }

  async voidUnsettled(): Promise<void> {
    await voidUnsettled.run(systemCtx(this.deps))
  }
}

export async function makeShares(db: Db, network: Network): Promise<void> {
  await insertShares(db, sharesOf(network.name))
}

/** Looks at the outcome of a settlement a few times, since the clock stands still within a pass: whoever waits sees what others do meanwhile. */
function patient(settlements: Settlements, chance: Chance): Settlements {
  return {
    ask: settlements.ask,
    async outcome(paymentId, waitMs) {
      for (let looks = waitMs === 0 ? 0 : chance.below(12); looks > 0; looks -= 1) {
        const outcome = await settlements.outcome(paymentId, 0)
        if (outcome.status !== 'settling' || outcome.txHash !== null) return outcome
      }
      return settlements.outcome(paymentId, 0)
    },
  }
}

/** No watcher runs beside settlement: all that a block shows counts as booked, and nothing is on hold. */
const allBooked: Deps['deposits'] = {
  bookedTo: () => Promise.resolve(2n ** 62n),
  amountsOnHold: (_, questions) => Promise.resolve(questions.map(() => ({ frozen: 0n, unscreened: 0n, notFinal: 0n }))),
}
