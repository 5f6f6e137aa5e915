import type { Network } from '@purser/protocol'
import { createLanes } from '../../src/chain/lanes/lanes.ts'
import type { Signer } from '../../src/chain/port.ts'
import { createReadFunds } from '../../src/features/funds/index.ts'
import {
  createChainMemory,
  createRecorder,
  createSettlements,
  createUnsettledChecks,
  voidUnsettled,
} from '../../src/features/payments/index.ts'
import type { Settlements } from '../../src/features/payments/ports.ts'
import { createReleaseLimit } from '../../src/features/payments/release-limit.ts'
import { passRelays, type RelayerParts, relayHandler } from '../../src/features/relayer/index.ts'
import { listForgotten, makeDue } from '../../src/features/relayer/queue-store.ts'
import { createTransferPorts } from '../../src/features/transfers/index.ts'
import { createWalletDirectory } from '../../src/features/wallets/receiving.ts'
import { signSweeps } from '../../src/features/wallets/sweep/relay.ts'
import type { Ctx, Deps } from '../../src/modules.ts'
import type { Tenant } from '../../src/platform/ctx.ts'
import type { ApiKeyId } from '../../src/platform/ids.ts'
import { forTenant, systemCtx } from '../../src/platform/work/runner.ts'
import { relayerParts } from '../relay-stage.ts'
import { steadyWitness } from '../steady-witness.ts'
import type { Chance } from './chance.ts'
import type { Life } from './gate.ts'
import { born, type Common, LaneTurns, leaseMs } from './life.ts'
import type { SimNode } from './nodes.ts'

const verifiedMsMax = 240_000
const forgottenMs = 30_000

/** The network that all processes work on, with the settler's key, beside the rest of the service, which no settlement touches. */
export interface Ground extends Common {
  readonly network: Network
  readonly signer: Signer
  readonly nodes: readonly SimNode[]
}

/** A process of the service, newly started. Its memory is lost when it dies. */
export class SimProcess {
  readonly life: Life
  readonly deps: Deps
  readonly #relaying: RelayerParts
  readonly #lanes: LaneTurns
  readonly #network: Network

  constructor(ground: Ground, name: string, clockAheadMs: number) {
    const { network, nodes, signer, chance } = ground
    const ownerToken = Buffer.from(chance.bytes(8)).toString('hex')
    const { life, floor: common } = born(ground, [{ network, nodes }], { name, clockAheadMs })
    // The database is never restored here. A mark is a step all the same: a process can die before and after it.
    const cover = () => ground.gate.step(life, 'cover', async () => undefined)
    const floor = { ...common, witness: { ...steadyWitness, cover } }
    const { db, clock, chains } = floor
    this.life = life
    this.#network = network
    const signerOf = async () => signer
    const lanes = createLanes({ deps: floor, chains, signerOf })
    this.deps = {
      ...floor,
      lanes,
      settlerAddress: signer.address,
      recordPayment: createRecorder({ db }, { nanoUsdPerDayMax: 10n ** 15n, openPerPayerMax: 100, verifiedMsMax }),
      chainMemory: createChainMemory(),
      unsettledChecks: createUnsettledChecks(),
      releaseLimit: createReleaseLimit(clock),
      settlements: patient(
        createSettlements({ db, clock }, () => undefined),
        chance,
      ),
      receivingWallets: createWalletDirectory({ db }),
      ...createTransferPorts(db),
      deposits: allBooked,
      readFunds: createReadFunds({ db, chains, deposits: allBooked }),
      facilitatorWaitMs: 1,
      settleWaitMs: 0,
    }
    const parts = relayerParts(this.deps, leaseMs)
    // A small batch does not wait for more: the clock does not move within a pass.
    this.#relaying = { ...parts, timings: { ...parts.timings, batchMs: 0 } }
    const handler = relayHandler(this.#relaying)
    this.#lanes = new LaneTurns(this.deps, { network, signerOf, ownerToken }, [handler])
  }

  /** The context of a caller with a key of this tenant. */
  as(tenant: Tenant, apiKeyId: ApiKeyId): Ctx {
    return { ...forTenant(systemCtx(this.deps), tenant), actor: { kind: 'api-key', apiKeyId } }
  }

  async passRelays(): Promise<void> {
    await passRelays(this.#relaying, this.#network)
  }

  /** Does a process's regular check of its nodes: unhealthy ones are called again. */
  async checkNodes(): Promise<void> {
    await this.deps.chains.check()
  }

  /** Does a process's half-minute check for forgotten queues; returns how many it restored. */
  async findForgotten(): Promise<number> {
    const forgotten = await listForgotten(this.deps.db, this.#network.name, forgottenMs)
    if (forgotten.length > 0) await makeDue(this.deps.db, forgotten)
    return forgotten.length
  }

  async turnLanes(): Promise<void> {
    await this.#lanes.turn()
  }

  async signSweeps(): Promise<void> {
    await signSweeps.run(systemCtx(this.deps))
  }

  async voidUnsettled(): Promise<void> {
    await voidUnsettled.run(systemCtx(this.deps))
  }
}

/** Reads the outcome of a settlement a few times, because the clock does not move within a pass: a waiting request sees the work of others. */
function patient(settlements: Settlements, chance: Chance): Settlements {
  return {
    ...settlements,
    async outcome(paymentId, waitMs) {
      for (let looks = waitMs === 0 ? 0 : chance.below(12); looks > 0; looks -= 1) {
        const outcome = await settlements.outcome(paymentId, 0)
        if (outcome.status !== 'settling' || outcome.txHash !== null) return outcome
      }
      return settlements.outcome(paymentId, 0)
    },
  }
}

/** No watcher runs beside settlement: everything that a block shows counts as booked, and nothing is on hold. */
const allBooked: Deps['deposits'] = {
  bookedTo: () => Promise.resolve(2n ** 62n),
  isBookedInTime: () => Promise.resolve(true),
  amountsOnHold: (_, questions) =>
    Promise.resolve(questions.map(() => ({ frozen: 0n, unscreened: 0n, notFinal: 0n, isBooked: true }))),
}
