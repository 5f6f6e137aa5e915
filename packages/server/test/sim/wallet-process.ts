import { type Address, type Hex, type Network, sameAddress } from '@purser/protocol'
import { fillHandler } from '../../src/chain/index.ts'
import { compareLanes } from '../../src/chain/lanes/compare.ts'
import { createLanes } from '../../src/chain/lanes/lanes.ts'
import type { LaneSigner } from '../../src/chain/lanes/port.ts'
import type { Signer } from '../../src/chain/port.ts'
import { createReadFunds, pruneReservations } from '../../src/features/funds/index.ts'
import { passRelays, type RelayerParts, relayHandler } from '../../src/features/relayer/index.ts'
import { createTransferPorts, transferHandler, transferRecurring } from '../../src/features/transfers/index.ts'
import { renewLease, takeLease, type WatcherLease } from '../../src/features/wallets/deposits/cursor-store.ts'
import { createFollower } from '../../src/features/wallets/deposits/follow.ts'
import { LeadLost } from '../../src/features/wallets/deposits/store-scan.ts'
import { createWatched, type Watched } from '../../src/features/wallets/deposits/watched.ts'
import { createAccountSigners, createWalletDirectory, screeningRecurring } from '../../src/features/wallets/index.ts'
import { createBookedInTime } from '../../src/features/wallets/real-ports.ts'
import { amountsOnHold, findBookedTo } from '../../src/features/wallets/screening/deposit-store.ts'
import { signSweeps } from '../../src/features/wallets/sweep/relay.ts'
import { createWithdrawalPorts, followWithdrawals } from '../../src/features/withdrawals/index.ts'
import type { Ctx, Deps } from '../../src/modules.ts'
import { createSandboxOffRamp } from '../../src/partners/offramp/sandbox.ts'
import type { ChainReader } from '../../src/partners/routing/port.ts'
import { createSandboxRouting } from '../../src/partners/routing/sandbox.ts'
import type { Screening } from '../../src/partners/screening/port.ts'
import type { Tenant } from '../../src/platform/ctx.ts'
import type { ApiKeyId } from '../../src/platform/ids.ts'
import { createWitness, type Marks } from '../../src/platform/witness/witness.ts'
import { bindTasks, forTenant, systemCtx } from '../../src/platform/work/runner.ts'
import { relayerParts } from '../relay-stage.ts'
import type { SimChain } from './chain.ts'
import type { Life } from './gate.ts'
import { born, type Common, LaneTurns, leaseMs, type Place } from './life.ts'
import { sandbox } from './market.ts'
import { type Mood, tempered } from './wallet-partner.ts'

/** What the processes share beside the database: two networks, the partners' moods, who is listed, and the marks of the witness. */
export interface WalletGround extends Common {
  readonly near: Place
  readonly far: Place
  readonly chain: SimChain
  readonly signer: Signer
  readonly screening: Screening
  readonly marks: Marks
  readonly mood: Mood
}

/** A process of the service that serves wallets, as it has just started. */
export class WalletProcess {
  readonly life: Life
  readonly deps: Deps
  readonly #witness: ReturnType<typeof createWitness>
  readonly #relaying: RelayerParts
  readonly #lanes: LaneTurns
  readonly #network: Network
  readonly #watched: Watched
  #following: { readonly lease: WatcherLease; readonly follow: () => Promise<void> } | undefined

  constructor(ground: WalletGround, name: string, clockAheadMs: number) {
    const { near, far, signer, chance, screening, gate } = ground
    const { life, floor } = born(ground, [near, far], { name, clockAheadMs })
    const { db, clock, chains, log } = floor
    this.life = life
    this.#network = near.network
    const marks: Marks = {
      ...ground.marks,
      create: (deployment, mark) => gate.step(life, 'mark', () => ground.marks.create(deployment, mark)),
    }
    this.#witness = createWitness({ marks, clock, log })
    this.#witness.open(db)
    const own = { ...floor, witness: this.#witness, screening }
    const signers = createAccountSigners({ db, walletKeys: own.walletKeys })
    const signerOf = (account: Address): Promise<LaneSigner | undefined> =>
      sameAddress(account, signer.address) ? Promise.resolve(signer) : signers(account)
    const reader: ChainReader = {
      call: (network, to, data) => chains.on(network).agreedCall(to, data),
      blockNumber: async (network) => (await chains.on(network).head()).number,
      logs: async (network, txHash: Hex) => (await chains.on(network).receipt(txHash))?.logs,
    }
    const findEvent: Parameters<typeof createSandboxRouting>[0]['findEvent'] = (network, address, topics) =>
      chains.on(network).findEvent(address, topics)
    const routing = createSandboxRouting({ reader, findEvent, clock, random: floor.random }, sandbox)
    const deposits = {
      bookedTo: findBookedTo,
      amountsOnHold,
      isBookedInTime: createBookedInTime({ clock, waitMs: (ms) => gate.sleep(life, ms) }),
    }
    this.deps = {
      ...own,
      ...createTransferPorts(db),
      ...createWithdrawalPorts(),
      deposits,
      readFunds: createReadFunds({ db, chains, deposits }),
      receivingWallets: createWalletDirectory({ db }),
      lanes: createLanes({ deps: own, chains, signerOf }),
      settlerAddress: signer.address,
      routingPartners: { test: { sandbox: tempered(routing, ground.mood, chance) }, live: {} },
      offRamps: { test: offRampOf(ground, clock), live: undefined },
      transferWaitMs: 0,
      settleWaitMs: 0,
      facilitatorWaitMs: 1,
    }
    const parts = relayerParts(this.deps, leaseMs)
    this.#relaying = { ...parts, timings: { ...parts.timings, batchMs: 0 } }
    const ownerToken = Buffer.from(chance.bytes(8)).toString('hex')
    const handlers = [fillHandler, relayHandler(this.#relaying), transferHandler(this.deps)]
    this.#lanes = new LaneTurns(this.deps, { network: near.network, signerOf, ownerToken }, handlers)
    this.#watched = createWatched(this.deps, 'test')
  }

  /** Compares the database with the marks, as each new connection does. */
  async connect(ground: WalletGround): Promise<void> {
    await this.#witness.compare(ground.db)
  }

  as(tenant: Tenant, apiKeyId: ApiKeyId): Ctx {
    return { ...forTenant(systemCtx(this.deps), tenant), actor: { kind: 'api-key', apiKeyId } }
  }

  /** The recurring tasks of a process. */
  tasks(): readonly (() => Promise<void>)[] {
    const loops = bindTasks(this.deps, [
      ...transferRecurring,
      signSweeps,
      followWithdrawals,
      ...screeningRecurring,
      compareLanes,
      pruneReservations,
    ])
    return [
      () => this.#lanes.turn(),
      () => this.#watch(),
      () => passRelays(this.#relaying, this.#network).then(() => undefined),
      () => this.deps.chains.check(),
      ...loops.map((loop) => () => loop.run()),
    ]
  }

  /** One pass of the watcher of deposits, where this process leads. */
  async #watch(): Promise<void> {
    try {
      const following = await this.#lead()
      await following?.follow()
    } catch (error) {
      if (!(error instanceof LeadLost)) throw error
      this.#following = undefined
    }
  }

  async #lead() {
    const { db } = this.deps
    if (this.#following !== undefined && (await renewLease(db, this.#following.lease, leaseMs))) return this.#following
    const network = this.#network
    const lease = await takeLease(db, network.name, { name: this.life.name, leaseMs })
    if (lease === undefined) return undefined
    const balances = this.deps.chains.on(network)
    const stopped = new AbortController().signal
    const reads = balances.blocks
    const nowMs = () => this.deps.clock.now().getTime()
    const following = { deps: this.deps, network, reads, balances, watched: this.#watched, lease, stopped, nowMs }
    const follow = createFollower(following)
    this.#following = { lease, follow }
    return this.#following
  }
}

/** The off-ramp reads the chain at depth, and always correctly. */
function offRampOf({ chain }: WalletGround, clock: Deps['clock']) {
  const balanceOf = async (_: string, __: Address, account: Address): Promise<bigint> =>
    chain.blocks[chain.finalNumber]?.state.balances.get(account.toLowerCase()) ?? 0n
  return createSandboxOffRamp({ clock, balanceOf })
}
