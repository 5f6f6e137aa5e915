import type { Address } from '@purser/protocol'
import { type ApiKeyId, newId } from '../../src/platform/ids.ts'
import { createLog } from '../../src/platform/log.ts'
import type { SimChain } from './chain.ts'
import { type Chance, chanceOf } from './chance.ts'
import { isOver, nextDue } from './due.ts'
import { themes } from './lies.ts'
import { Model } from './model.ts'
import { type Ground, SimProcess } from './process.ts'
import { type Market, type Payer, type PayerKind, payerKinds, purchase } from './purchase.ts'
import { Scene } from './scene.ts'
import { demand, giveUp, redeem, type Sale, saleOf, take } from './shop.ts'
import { aChain, type Stage } from './stage.ts'
import { isTimely, payAfterAll, strike } from './strikes.ts'
import { deposit, sweep } from './sweeps.ts'
import { Violation } from './violation.ts'

const payTo: Address = `0x${'d'.repeat(40)}`
const price = 10_000n
const clocksApartMs = 90_000
const quietRoundsMax = 110
/** Quiet rounds in which honest buyers still come, and in which one of two nodes may still lie. */
const [quietBuyingRounds, quietLyingRounds] = [3, 4]

/** Counts of a seed, which show how much was simulated. */
export interface Simulated {
  readonly payments: number
  readonly settled: number
  readonly served: number
  readonly steps: number
  readonly deaths: number
}

/** What one organisation has more of than fits into a transaction, or than lone relays per turn. */
type Flood = 'none' | 'batch' | 'alone'

/** One history: a chain, its nodes, two processes and their buyers, all drawn from one seed. Throws a `Violation`. */
export class Simulation {
  readonly #stage: Stage
  readonly #chance: Chance
  readonly #chain: SimChain
  readonly #scene: Scene
  readonly #ground: Ground
  readonly #model: Model
  readonly #apiKeyId: ApiKeyId
  readonly #processes: SimProcess[]
  readonly #flood: Flood
  #deaths = 0
  #payers = 0

  constructor(stage: Stage, seed: number) {
    this.#stage = stage
    const chance = chanceOf(seed)
    this.#chance = chance
    this.#flood = seed % 40 === 0 ? 'batch' : seed % 20 === 10 ? 'alone' : 'none'
    this.#scene = new Scene({
      chance,
      network: stage.network,
      isDeep: seed % 12 === 5,
      setNow: stage.setNow,
      countLocked: stage.countLocked,
      chainAt: (timestamp) => aChain(stage, chance, timestamp),
      signed: () => this.#model.sales.map(({ signed }) => signed),
      themes,
    })
    this.#chain = this.#scene.chain
    const { db, deps, network, signer } = stage
    this.#ground = {
      db,
      deps,
      network,
      signer,
      nodes: this.#scene.nodes,
      gate: this.#scene.gate,
      chance,
      log: createLog({ level: process.env.TEST_LOG ?? 'silent' }),
      nowMs: () => this.#scene.nowMs,
    }
    this.#model = new Model(db, this.#chain, {
      hasLiar: this.#scene.hasLiar,
      sweeping: stage.sweeper.tenant.organisationId,
    })
    this.#apiKeyId = newId('key', {
      clock: { now: () => new Date(this.#scene.nowMs) },
      random: { bytes: chance.bytes },
    })
    this.#processes = [this.#start(0), this.#start(1)]
  }

  /** A hash of the history up to now. */
  get history(): string {
    return this.#scene.gate.history
  }

  async run(): Promise<Simulated> {
    await this.#stage.clear()
    await this.#stage.setNow(this.#scene.nowMs)
    await this.#chaos(6 + this.#chance.below(6))
    const statuses = await this.#quiet()
    await this.#model.checkEnd(statuses)
    return {
      payments: statuses.size,
      settled: [...statuses.values()].filter((status) => status === 'settled').length,
      served: this.#model.sales.filter(({ served }) => served > 0).length,
      steps: this.#scene.gate.steps,
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
      this.#scene.gate.deaths = this.#chance.pick([0, 0, 4, 15])
      if (this.#chance.happens(0.1)) await this.#halt(30_000 + this.#chance.below(120_000))
      await this.#scene.pass(this.#chance.pick([2_000, 6_000, 12_000, 13_000, 30_000]))
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

  /** Children receive money at random, and their owner sweeps. */
  #sweep(): Promise<void>[] {
    const { sweeper } = this.#stage
    if (this.#chance.happens(0.4)) deposit(this.#chain, this.#chance, sweeper)
    if (!this.#chance.happens(0.3)) return []
    return [sweep(this.#chance.pick(this.#processes).as(sweeper.tenant, this.#apiKeyId), sweeper)]
  }

  /** One organisation fills the queues. */
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

  /** Faults end, and time passes until nothing is open. */
  async #quiet(): Promise<ReadonlyMap<string, string>> {
    const liesOn = this.#scene.calm()
    let statuses = await this.#model.check(false)
    for (let round = 0; round < quietRoundsMax; round += 1) {
      const isHealed = !liesOn || this.#scene.nodes.length > 2 || round > quietLyingRounds
      if (isHealed) this.#scene.heal()
      await this.#scene.pass(await this.#nextMs(round))
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

  /** First time for blocks, then until work is due. */
  async #nextMs(round: number): Promise<number> {
    if (round <= quietLyingRounds + 1 || round % 3 !== 2) return 12_000
    const leftMs = ((await nextDue(this.#stage.db))?.getTime() ?? 0) - this.#scene.nowMs
    return leftMs > 12_000 ? leftMs + 1_000 : 12_000
  }

  /** Time passes without blocks. */
  async #halt(ms: number): Promise<void> {
    await this.#scene.halt(ms)
    await this.#drain(this.#working())
    await this.#model.check(false)
  }

  #disturb(): void {
    if (this.#scene.disturb()) this.#model.shake()
    this.#revive()
  }

  #revive(): void {
    this.#processes.forEach((one, place) => {
      if (!one.life.isDead) return
      this.#deaths += 1
      this.#processes[place] = this.#start(place)
    })
  }

  /** The background work of one process, or of both by default. */
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

  /** Only a process that died can leave a queue that no worker visits. */
  async #findForgotten(process: SimProcess): Promise<void> {
    const count = await process.findForgotten()
    if (count > 0 && this.#deaths === 0 && !this.#processes.some(({ life }) => life.isDead))
      throw new Violation(`${count} queues with waiting relays were visited by no worker`)
  }

  #market(): Market {
    const { network, token, signer } = this.#stage
    const nowSeconds = Math.floor(this.#scene.nowMs / 1_000)
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

  /** A payer with a key; their number is limited. */
  #payer(): Payer {
    this.#payers += 1
    return this.#stage.payers[this.#payers - 1] ?? this.#stranger()
  }

  /** A payer whose signatures only the chain can check. */
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

  /** The buyer signs. The returned function sends the purchase to its shop and so to the service. */
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

  /** One round of a sale: its shop requests its money or gives up, and its payer carries out its plan. */
  #act(sale: Sale): Promise<void>[] {
    const chance = this.#chance
    const isStriking = isTimely(sale, Math.floor(this.#scene.nowMs / 1_000), chance.happens(0.3))
    if (!sale.hasStruck && isStriking) {
      sale.hasStruck = true
      strike(this.#chain, sale)
    } else if (sale.kind === 'pays-after-all' && sale.hasStruck && chance.happens(0.2)) payAfterAll(this.#chain, sale)
    if (sale.entryPoint === 'reporting' && chance.happens(0.3)) {
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
    sale.requestedAt ??= { ...planned }
  }

  #drain(work: readonly Promise<void>[]): Promise<void> {
    return this.#scene.drain(work)
  }
}
