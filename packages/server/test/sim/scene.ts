import type { Network } from '@purser/protocol'
import { isProblem } from '../../src/platform/errors.ts'
import { Death } from '../mortal.ts'
import type { SimChain } from './chain.ts'
import type { Chance } from './chance.ts'
import { Gate } from './gate.ts'
import { type Liar, liarAbout, type Theme } from './lies.ts'
import { noFaults, SimNode } from './nodes.ts'
import type { Signed } from './signed.ts'
import { weatherOf } from './weather.ts'

interface SceneOptions {
  readonly chance: Chance
  readonly network: Network
  /** Whether a reorganization goes beyond the confirmation depth, once. */
  readonly isDeep: boolean
  readonly setNow: (ms: number) => Promise<unknown>
  readonly countLocked: () => Promise<number>
  readonly chainAt: (timestamp: bigint) => SimChain
  /** The transfer that a lying node pretends. */
  readonly signed: () => readonly Signed[]
  /** The lies of the node. A repeated entry is more likely. */
  readonly themes: readonly Theme[]
}

/** Where a history happens: one time, one chain, and nodes that fail, are late and lie. */
export class Scene {
  readonly chain: SimChain
  readonly nodes: readonly SimNode[]
  readonly gate: Gate
  /** The place of the node that may lie; below zero for none. */
  readonly faulty: number
  readonly liar: Liar
  readonly #options: SceneOptions
  /** What the liar says all the time, where it keeps to one thing. */
  readonly #obsession: Theme | undefined
  #isDeep: boolean
  nowMs: number
  isChaos = true
  /** Called with each time that passes, before nodes see what happened in it. */
  onPass: () => void = () => undefined

  constructor(options: SceneOptions) {
    const { chance, network } = options
    this.#options = options
    this.#isDeep = options.isDeep
    // Just before the end of a day or a month, or at any time.
    this.nowMs =
      Date.UTC(2026, chance.pick([9, 10, 11]), chance.below(30) + 1, 23, 59, 30) - chance.pick([0, 60_000, 7_200_000])
    this.chain = options.chainAt(BigInt(Math.floor(this.nowMs / 1_000)))
    const count = chance.pick([1, 2, 3, 3])
    this.liar = liarAbout(this.chain, chance, options.signed)
    const seen = { chain: this.chain, chainId: network.chainId, chance, liar: this.liar }
    this.nodes = Array.from({ length: count }, (_, place) => new SimNode(place, seen))
    // Of one node none may lie, of two and three one: most often the one that is called first.
    this.faulty = count === 1 ? -1 : chance.below(count) * chance.pick([0, 1])
    this.#obsession = chance.happens(0.3) ? chance.pick(options.themes) : undefined
    this.gate = new Gate(chance, options.countLocked, () => this.#between())
    this.gate.passTime = (ms) => this.halt(ms)
  }

  get hasLiar(): boolean {
    return this.faulty >= 0
  }

  /** Time passes: blocks come, and nodes see them. */
  async pass(ms: number): Promise<void> {
    await this.halt(ms)
    const blocks = Math.min(4, Math.floor(ms / 6_000))
    for (let mined = 0; mined < blocks; mined += 1)
      this.chain.mine(BigInt(Math.floor(this.nowMs / 1_000) - (blocks - 1 - mined)))
    this.onPass()
    for (const node of this.nodes) node.sync()
  }

  /** Time passes without a new block. */
  async halt(ms: number): Promise<void> {
    this.nowMs += ms
    this.gate.note(`${ms} ms pass`)
    await this.#options.setNow(this.nowMs)
  }

  /** The chain does not wait for a process to end its step: blocks come and go, and nodes see them one after the other. */
  #between(): void {
    const { chance } = this.#options
    if (!this.isChaos || !chance.happens(0.02)) return
    const isFork = chance.happens(0.3)
    if (isFork) this.#reorganize(0.1)
    if (!isFork || chance.happens(0.7)) this.chain.mine(this.chain.head.timestamp + 1n)
    for (const node of this.nodes) if (chance.happens(0.7)) node.sync()
  }

  #reorganize(forgotten: number): void {
    const { chance, network } = this.#options
    this.chain.reorganize(1 + chance.below(network.confirmationDepth - 1), forgotten)
  }

  /** Sets the state of the nodes for the next round, and sometimes reorganizes the chain. Returns whether final blocks were removed. */
  disturb(): boolean {
    const { chance } = this.#options
    if (chance.happens(0.2)) this.#reorganize(chance.pick([0, 0, 1]))
    const isDeep = this.#isDeep && this.chain.blocks.length > 9
    if (isDeep) {
      this.#isDeep = false
      this.chain.reorganizeFinal(chance.below(4), chance.pick([0, 0.5]))
    }
    for (const node of this.nodes) node.sync()
    if (chance.happens(0.05)) this.chain.forgetWaiting()
    const weather = weatherOf(chance, { count: this.nodes.length, faulty: this.faulty, themes: this.#options.themes })
    this.liar.theme = this.#obsession ?? weather.theme
    this.nodes.forEach((node, place) => {
      node.faults = weather.faults[place] ?? noFaults()
    })
    return isDeep
  }

  /** Ends all faults except those of the lying node, if it continues. Returns whether it continues. */
  calm(): boolean {
    this.isChaos = false
    this.gate.deaths = 0
    const liesOn = this.nodes.length > 1 && this.#options.chance.happens(0.4)
    this.nodes.forEach((node, place) => {
      node.faults = liesOn && place === this.faulty ? { ...noFaults(), lies: 0.5 } : noFaults()
    })
    return liesOn
  }

  /** Where one of two lied on, it ends. */
  heal(): void {
    const faulty = this.nodes[this.faulty]
    if (this.nodes.length === 2 && faulty !== undefined) faulty.faults = noFaults()
  }

  /** Runs work to its end. What fails because a process is gone or the chain cannot be read is tried again by the service itself. */
  async drain(work: readonly Promise<void>[]): Promise<void> {
    const failures: unknown[] = []
    const caught = work.map((one) => one.catch((error: unknown) => void failures.push(error)))
    await this.gate.drain(caught)
    const unexpected = failures.find((error) => !isExpected(error))
    if (unexpected !== undefined) throw unexpected
  }
}

/** A killed process, or a response that a caller may get. */
function isExpected(error: unknown): boolean {
  return error instanceof Death || isProblem(error)
}
