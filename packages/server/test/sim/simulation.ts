import type { Address } from '@purser/protocol'
import { isProblem } from '../../src/platform/errors.ts'
import { type ApiKeyId, newId } from '../../src/platform/ids.ts'
import { createLog } from '../../src/platform/log.ts'
import { Death } from '../mortal.ts'
import type { SimChain } from './chain.ts'
import { type Chance, chanceOf } from './chance.ts'
import { isOver, nextDue } from './due.ts'
import { Gate } from './gate.ts'
import { type Liar, liarAbout, type Theme, themes } from './lies.ts'
import { Model } from './model.ts'
import { noFaults, SimNode } from './nodes.ts'
import { type Ground, SimProcess } from './process.ts'
import { type Market, type Payer, type PayerKind, payerKinds, purchase } from './purchase.ts'
import { demand, giveUp, redeem, type Sale, saleOf, take } from './shop.ts'
import { aChain, type Stage } from './stage.ts'
import { isTimely, payAfterAll, strike } from './strikes.ts'
import { deposit, sweep } from './sweeps.ts'
import { Violation } from './violation.ts'
import { weatherOf } from './weather.ts'

const payTo: Address = `0x${'d'.repeat(40)}`
const price = 10_000n
const clocksApartMs = 90_000
const quietRoundsMax = 110
/** Quiet rounds in which honest buyers still come, and in which one of two nodes may still lie. */
const [quietBuyingRounds, quietLyingRounds] = [3, 4]

/** What a seed did, for whoever reads how much was simulated. */
export interface Simulated {
  readonly payments: number
  readonly settled: number
  readonly served: number
  readonly steps: number
  readonly deaths: number
}

/** What one organization has more of than a transaction carries, or than travel alone in one turn. */
type Flood = 'none' | 'batch' | 'alone'

/** One history: a chain, its nodes, two processes and their buyers, all by the chance of one seed. Throws a `Violation`. */
export class Simulation {
  readonly #stage: Stage
  readonly #chance: Chance
  readonly #chain: SimChain
  readonly #nodes: readonly SimNode[]
  readonly #gate: Gate
  readonly #ground: Ground
  readonly #model: Model
  readonly #apiKeyId: ApiKeyId
  readonly #processes: SimProcess[]
  readonly #faulty: number
  readonly #flood: Flood
  readonly #liar: Liar
  /** What the liar says all the time, where it keeps to one thing. */
  readonly #obsession: Theme | undefined
  /** Whether a reorganization goes beyond the confirmation depth, once. */
  #isDeep: boolean
  #nowMs: number
  #deaths = 0
  #payers = 0
  #isChaos = true

  constructor(stage: Stage, seed: number) {
    this.#stage = stage
    const chance = chanceOf(seed)
    this.#chance = chance
    this.#flood = seed % 40 === 0 ? 'batch' : seed % 20 === 10 ? 'alone' : 'none'
    this.#isDeep = seed % 12 === 5
    // Just before the end of a day or a month, or at any time.
    this.#nowMs =
      Date.UTC(2026, chance.pick([9, 10, 11]), chance.below(30) + 1, 23, 59, 30) - chance.pick([0, 60_000, 7_200_000])
    this.#chain = aChain(stage, chance, BigInt(Math.floor(this.#nowMs / 1_000)))
    const count = chance.pick([1, 2, 3, 3])
    this.#liar = liarAbout(this.#chain, chance, () => this.#model.sales.map(({ signed }) => signed))
    const options = {
      chain: this.#chain,
      chainId: stage.network.chainId,
      settler: stage.signer.address,
      chance,
      liar: this.#liar,
    }
    this.#nodes = Array.from({ length: count }, (_, place) => new SimNode(place, options))
    // Of one node none may lie, of two and three one: most often the one that is called first.
    this.#faulty = count === 1 ? -1 : chance.below(count) * chance.pick([0, 1])
    this.#obsession = chance.happens(0.3) ? chance.pick(themes) : undefined
    this.#gate = new Gate(chance, stage.countLocked, () => this.#between())
    const { db, deps, network, signer } = stage
    this.#ground = {
      db,
      deps,
      network,
      signer,
      nodes: this.#nodes,
      gate: this.#gate,
      chance,
      log: createLog({ level: process.env.TEST_LOG ?? 'silent' }),
      nowMs: () => this.#nowMs,
    }
    this.#model = new Model(db, this.#chain, {
      hasLiar: this.#faulty >= 0,
      sweeping: stage.sweeper.tenant.organisationId,
    })
    this.#apiKeyId = newId('key', { clock: { now: () => new Date(this.#nowMs) }, random: { bytes: chance.bytes } })
    this.#processes = [this.#start(0), this.#start(1)]
  }

  async run(): Promise<Simulated> {
    await this.#stage.clear()
    await this.#stage.setNow(this.#nowMs)
    await this.#chaos(6 + this.#chance.below(6))
    this.#isChaos = false
    const statuses = await this.#quiet()
    await this.#model.checkEnd(statuses)
    return {
      payments: statuses.size,
      settled: [...statuses.values()].filter((status) => status === 'settled').length,
      served: this.#model.sales.filter(({ served }) => served > 0).length,
      steps: this.#gate.steps,
      deaths: this.#deaths,
    }
  }

  #start(place: number): SimProcess {
    return new SimProcess(
      this.#ground,
      `process ${place}`,
      place === 0 ? 0 : clocksApartMs * (this.#chance.happens(0.5) ? 1 : -1),
    )
  }

  async #chaos(rounds: number): Promise<void> {
    for (let round = 0; round < rounds; round += 1) {
      this.#gate.deaths = this.#chance.pick([0, 0, 4, 15])
      if (this.#chance.happens(0.1)) await this.#halt(30_000 + this.#chance.below(120_000))
      await this.#pass(this.#chance.pick([2_000, 6_000, 12_000, 13_000, 30_000]))
      this.#disturb()
      if (round === 1) await this.#rush()
      const buying: (() => Promise<void>)[] = []
      for (let left = 1 + this.#chance.below(3); left > 0; left -= 1)
        buying.push(...(await this.#buy(this.#chance.pick(payerKinds))))
      await this.#drain([
        ...buying.map((buy) => buy()),
        ...this.#sweep(),
        ...this.#working(),
        ...this.#model.sales.flatMap((sale) => this.#act(sale)),
      ])
      await this.#model.check(false)
    }
  }

  /** Children get money now and then, and their owner sweeps. */
  #sweep(): Promise<void>[] {
    const { sweeper } = this.#stage
    if (this.#chance.happens(0.4)) deposit(this.#chain, this.#chance, sweeper)
    if (!this.#chance.happens(0.3)) return []
    return [sweep(this.#chance.pick(this.#processes).as(sweeper.tenant, this.#apiKeyId), sweeper)]
  }

  /** One organization fills the queues. */
  async #rush(): Promise<void> {
    const tenant = this.#chance.pick(this.#stage.tenants)
    if (this.#flood === 'none') return
    const isBatch = this.#flood === 'batch'
    const payers = Array.from({ length: isBatch ? 130 : 9 }, () => this.#stranger())
    const each = isBatch ? payers : payers.flatMap((payer) => Array.from({ length: 5 }, () => payer))
    const rushed = new Set<Payer>()
    const buying: (() => Promise<void>)[] = []
    for (const payer of each) {
      const kind = isBatch ? 'poor' : 'contract'
      buying.push(await this.#sign({ tenant, kind, payer, isFunded: rushed.has(payer), hasPlenty: !isBatch }))
      rushed.add(payer)
    }
    await this.#drain(buying.map((buy) => buy()))
  }

  /** Faults end, and time goes on until nothing is open. */
  async #quiet(): Promise<ReadonlyMap<string, string>> {
    this.#gate.deaths = 0
    const liesOn = this.#nodes.length > 1 && this.#chance.happens(0.4)
    this.#nodes.forEach((node, place) => {
      node.faults = liesOn && place === this.#faulty ? { ...noFaults(), lies: 0.5 } : noFaults()
    })
    let statuses = await this.#model.check(false)
    for (let round = 0; round < quietRoundsMax; round += 1) {
      const isHealed = !liesOn || this.#nodes.length > 2 || round > quietLyingRounds
      const faulty = this.#nodes[this.#faulty]
      if (isHealed && this.#nodes.length === 2 && faulty !== undefined) faulty.faults = noFaults()
      await this.#pass(await this.#nextMs(round))
      const bought = round < quietBuyingRounds ? [await this.#buyPromised()] : []
      const asking = this.#model.sales.flatMap((sale) => this.#actQuietly(sale, round))
      await this.#drain([
        ...bought.map((buy) => buy()),
        ...asking,
        ...this.#working(round % 2 === 0 ? 0 : this.#chance.below(2)),
      ])
      statuses = await this.#model.check(isHealed)
      if (round >= quietBuyingRounds && (await isOver(this.#stage.db))) return statuses
    }
    const open = [...statuses]
      .filter(([, status]) => ['verified', 'settling'].includes(status))
      .map(([claim, status]) => `${claim.slice(-12)} is ${status}`)
    throw new Violation(`after ${quietRoundsMax} quiet rounds something is open: ${open.join(', ')}`)
  }

  /** Blocks first, then to when something is due. */
  async #nextMs(round: number): Promise<number> {
    if (round <= quietLyingRounds + 1 || round % 3 !== 2) return 12_000
    const leftMs = ((await nextDue(this.#stage.db))?.getTime() ?? 0) - this.#nowMs
    return leftMs > 12_000 ? leftMs + 1_000 : 12_000
  }

  /** Time passes, and the chain stands still. */
  async #halt(ms: number): Promise<void> {
    this.#nowMs += ms
    await this.#stage.setNow(this.#nowMs)
    await this.#drain(this.#working())
    await this.#model.check(false)
  }

  /** Time passes: blocks come, and nodes see them. */
  async #pass(ms: number): Promise<void> {
    this.#nowMs += ms
    await this.#stage.setNow(this.#nowMs)
    const blocks = Math.min(4, Math.floor(ms / 6_000))
    for (let mined = 0; mined < blocks; mined += 1)
      this.#chain.mine(BigInt(Math.floor(this.#nowMs / 1_000) - (blocks - 1 - mined)))
    for (const node of this.#nodes) node.sync()
  }

  /** The chain does not wait for a process to end its step: blocks come and go, and nodes see them one after the other. */
  #between(): void {
    const chance = this.#chance
    if (!this.#isChaos || !chance.happens(0.02)) return
    const isFork = chance.happens(0.3)
    if (isFork) this.#reorganize(0.1)
    if (!isFork || chance.happens(0.7)) this.#chain.mine(this.#chain.head.timestamp + 1n)
    for (const node of this.#nodes) if (chance.happens(0.7)) node.sync()
  }

  #reorganize(forgotten: number): void {
    this.#chain.reorganize(1 + this.#chance.below(this.#stage.network.confirmationDepth - 1), forgotten)
  }

  #disturb(): void {
    const chance = this.#chance
    if (chance.happens(0.2)) this.#reorganize(chance.pick([0, 0, 1]))
    if (this.#isDeep && this.#chain.blocks.length > 9) {
      this.#isDeep = false
      this.#chain.reorganizeFinal(chance.below(4), chance.pick([0, 0.5]))
      this.#model.shake()
    }
    for (const node of this.#nodes) node.sync()
    if (chance.happens(0.05)) this.#chain.forgetWaiting()
    const weather = weatherOf(chance, { count: this.#nodes.length, faulty: this.#faulty })
    this.#liar.theme = this.#obsession ?? weather.theme
    this.#nodes.forEach((node, place) => {
      node.faults = weather.faults[place] ?? noFaults()
    })
    this.#revive()
  }

  #revive(): void {
    this.#processes.forEach((one, place) => {
      if (!one.life.isDead) return
      this.#deaths += 1
      this.#processes[place] = this.#start(place)
    })
  }

  /** What processes do by themselves; of both where it is not said whose. */
  #working(only?: number): Promise<void>[] {
    this.#revive()
    const chosen = this.#processes.filter((_, place) => only === undefined || place === only)
    return chosen.flatMap((one) => {
      const tasks = [
        () => one.passRelays(),
        () => one.turnLanes(),
        () => one.voidUnsettled(),
        () => one.signSweeps(),
        () => this.#findForgotten(one),
        () => one.checkNodes(),
      ]
      return tasks
        .filter((_, index) => only !== undefined || this.#chance.happens(index >= 4 ? 0.25 : 0.8))
        .map((task) => task())
    })
  }

  /** Only a process that died can leave a queue that nobody visits. */
  async #findForgotten(process: SimProcess): Promise<void> {
    const count = await process.findForgotten()
    if (count > 0 && this.#deaths === 0 && !this.#processes.some(({ life }) => life.isDead))
      throw new Violation(`${count} queues with waiting relays were visited by nobody`)
  }

  #market(): Market {
    const { network, token, signer } = this.#stage
    const nowSeconds = Math.floor(this.#nowMs / 1_000)
    return {
      chance: this.#chance,
      chain: this.#chain,
      network,
      token,
      settler: signer.address,
      payTo,
      price,
      nowSeconds,
    }
  }

  /** A payer with a key; of those there are only so many. */
  #payer(): Payer {
    this.#payers += 1
    return this.#stage.payers[this.#payers - 1] ?? this.#stranger()
  }

  /** A payer whose signatures only the chain knows. */
  #stranger(): Payer {
    return { address: `0x${Buffer.from(this.#chance.bytes(20)).toString('hex')}`, sign: () => Promise.resolve('0x') }
  }

  async #buy(kind: PayerKind): Promise<(() => Promise<void>)[]> {
    const payer = this.#payer()
    const tenant = this.#chance.pick(this.#stage.tenants)
    const first = await this.#sign({ tenant, kind, payer })
    if (kind !== 'owes-twice') return [first]
    return [first, await this.#sign({ tenant: this.#chance.pick(this.#stage.tenants), kind, payer, isFunded: true })]
  }

  #buyPromised(): Promise<() => Promise<void>> {
    const kinds = this.#flood === 'alone' ? (['contract'] as const) : (['honest', 'contract', 'permit'] as const)
    const [kind, tenant] = [this.#chance.pick<PayerKind>(kinds), this.#chance.pick(this.#stage.tenants)]
    return this.#sign({ tenant, kind, payer: this.#payer(), isPromised: true })
  }

  /** The buyer signs; what it brings to its shop goes to the service when the answer is called. */
  async #sign(wanted: {
    readonly tenant: Sale['tenant']
    readonly kind: PayerKind
    readonly payer: Payer
    readonly isFunded?: boolean
    readonly isPromised?: boolean
    readonly hasPlenty?: boolean
  }): Promise<() => Promise<void>> {
    const { tenant, isFunded = false, isPromised = false, hasPlenty = false } = wanted
    const market = this.#market()
    const sale = saleOf(await purchase(market, { ...wanted, isFunded, hasPlenty }), isPromised)
    const process = this.#chance.pick(this.#processes)
    this.#model.add(sale)
    return () => take(process.as(tenant, this.#apiKeyId), market, sale)
  }

  /** What happens about a sale in a round: its shop wants its money or gives up, and its payer does what it had in mind. */
  #act(sale: Sale): Promise<void>[] {
    const chance = this.#chance
    const isStriking = isTimely(sale, Math.floor(this.#nowMs / 1_000), chance.happens(0.3))
    if (!sale.hasStruck && isStriking) {
      sale.hasStruck = true
      strike(this.#chain, sale)
    } else if (sale.kind === 'pays-after-all' && sale.hasStruck && chance.happens(0.2)) payAfterAll(this.#chain, sale)
    if (sale.door === 'reporting' && chance.happens(0.3)) {
      const ctx = this.#ctxOf(sale)
      if (!sale.isUnreported) return [redeem(ctx, sale, this.#model, { rerun: true })]
    }
    if (chance.happens(0.5)) return [this.#ask(sale)]
    return chance.happens(0.05) ? [giveUp(this.#ctxOf(sale), sale)] : []
  }

  #actQuietly(sale: Sale, round: number): Promise<void>[] {
    if (sale.isUnreported || (sale.isPromised && sale.served === 0)) return [this.#ask(sale)]
    if (sale.isAbandoned && sale.served === 0 && round % 4 === 3)
      return [redeem(this.#ctxOf(sale), sale, this.#model, { rerun: true })]
    return round < quietLyingRounds && this.#chance.happens(0.2) ? [this.#ask(sale)] : []
  }

  #ctxOf(sale: Sale) {
    return this.#chance.pick(this.#processes).as(sale.tenant, this.#apiKeyId)
  }

  async #ask(sale: Sale): Promise<void> {
    const { planned } = this.#model
    await demand(this.#ctxOf(sale), sale, this.#model, this.#chance)
    sale.askedAt ??= { ...planned }
  }

  /** Runs work to its end. What fails because a process is gone or the chain cannot be read is tried again by the service itself. */
  async #drain(work: readonly Promise<void>[]): Promise<void> {
    const failures: unknown[] = []
    const caught = work.map((one) => one.catch((error: unknown) => void failures.push(error)))
    await this.#gate.drain(caught)
    const unexpected = failures.find((error) => !isExpected(error))
    if (unexpected !== undefined) throw unexpected
  }
}

/** A process that is gone, or an answer that a caller may get. */
function isExpected(error: unknown): boolean {
  return error instanceof Death || isProblem(error)
}
