import type { Network } from '@purser/protocol'
import { type ChainsOptions, createChains } from '../../src/chain/chains.ts'
import { type createLanes, LaneDriver, scopeOf, sharesOf } from '../../src/chain/lanes/lanes.ts'
import type { LaneHandler } from '../../src/chain/port.ts'
import type { WalletKeys } from '../../src/custody/index.ts'
import type { Deps } from '../../src/modules.ts'
import type { Db } from '../../src/platform/db/db.ts'
import { insertShares, type Lease, renewLeases, takeLeases } from '../../src/platform/leases/store.ts'
import type { Log } from '../../src/platform/log.ts'
import type { Chance } from './chance.ts'
import { type Gate, gatedDb, type Life, type Step } from './gate.ts'
import { outboundTo, type SimNode } from './nodes.ts'

export const leaseMs = 20_000

/** What all processes of a history share. */
export interface Common {
  readonly deps: Deps
  readonly db: Db
  readonly gate: Gate
  readonly chance: Chance
  readonly log: Log
  nowMs(): number
}

/** A network and its nodes. */
export interface Place {
  readonly network: Network
  readonly nodes: readonly SimNode[]
}

type SignerOf = Parameters<typeof createLanes>[0]['signerOf']

/** A process as it has just started: its clock, its way to the database and to the nodes, of which each step is one of the gate. */
export function born(
  common: Common,
  places: readonly Place[],
  { name, clockAheadMs }: { readonly name: string; readonly clockAheadMs: number },
) {
  const { gate, chance, log } = common
  const life: Life = { name, isDead: false }
  const clock = { now: () => new Date(common.nowMs() + clockAheadMs) }
  const nodes = places.flatMap((place) => place.nodes)
  const rpcUrls = Object.fromEntries(places.map((place) => [place.network.name, place.nodes.map(({ url }) => url)]))
  const options: ChainsOptions = {
    outbound: outboundTo(nodes, {
      async around(what, doing) {
        const response = await gate.step(life, what, doing)
        gate.note(response === undefined ? 'no answer' : JSON.stringify(response))
        return response
      },
      wait: (ms) => gate.sleep(life, ms),
    }),
    clock,
    networks: places.map(({ network }) => network),
    rpcUrls,
    rpcTimeoutMs: 1_000,
    // All nodes are awaited: they respond or time out by the history's clock. By the machine's a loaded one would have another history.
    wait: () => new Promise(() => {}),
    log,
  }
  const own = {
    db: gatedDb(common.db, gate, life),
    clock,
    random: { bytes: chance.bytes },
    log,
    walletKeys: gatedKeys(common.deps.walletKeys, (what, doing) => gate.step(life, what, doing)),
  }
  return { life, floor: { ...common.deps, ...own, chains: createChains(options) } }
}

/**
 * Keys of which each derivation and signature is a step. They use another thread and the database: outside the gate, the place of what follows
 * would depend on the machine's load, and no seed would repeat its history.
 */
function gatedKeys(keys: WalletKeys, step: Step): WalletKeys {
  return {
    accountNode: (tenant, account) => step(`derive ${account}`, () => keys.accountNode(tenant, account)),
    signer(tenant, key) {
      const signer = keys.signer(tenant, key)
      const sign = <T>(doing: () => Promise<T>): Promise<T> => step(`sign as ${key.address}`, doing)
      return {
        address: signer.address,
        signTransaction: (fields) => sign(() => signer.signTransaction(fields)),
        signTempoFeePayer: (transaction, feeToken) => sign(() => signer.signTempoFeePayer(transaction, feeToken)),
        signTempoTransaction: (fields) => sign(() => signer.signTempoTransaction(fields)),
        signTransferWithAuthorization: (domain, authorization) =>
          sign(() => signer.signTransferWithAuthorization(domain, authorization)),
      }
    },
  }
}

/** The steps of a process for the lanes of one network. */
export class LaneTurns {
  readonly #db: Db
  readonly #network: Network
  readonly #driver: LaneDriver
  readonly #ownerToken: string
  #leases: readonly Lease[] = []

  constructor(
    deps: Deps,
    {
      network,
      signerOf,
      ownerToken,
    }: { readonly network: Network; readonly signerOf: SignerOf; readonly ownerToken: string },
    handlers: readonly LaneHandler[],
  ) {
    this.#db = deps.db
    this.#network = network
    this.#ownerToken = ownerToken
    const byPurpose = new Map(handlers.map((handler) => [handler.purpose, handler]))
    this.#driver = new LaneDriver({ deps, chains: deps.chains, network, signerOf, handlers: byPurpose })
  }

  async turn(): Promise<void> {
    const holder = { ownerToken: this.#ownerToken, leaseMs }
    const shares = sharesOf(this.#network.name)
    const kept = this.#leases.length === 0 ? [] : await renewLeases(this.#db, this.#leases, holder)
    const taken = kept.length === shares.length ? [] : await takeLeases(this.#db, shares, holder)
    this.#leases = [...kept, ...taken]
    await this.#driver.turn({ scope: scopeOf(this.#network.name), ...holder, leases: this.#leases })
    await this.#driver.waitUntilIdle('finished')
  }
}

export async function makeShares(db: Db, network: Network): Promise<void> {
  await insertShares(db, sharesOf(network.name))
}
