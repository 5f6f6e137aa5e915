import type { Address, Hex } from '@purser/protocol'
import { z } from 'zod'
import { withdrawSettlement } from '../../src/features/payments/facilitator/withdraw.ts'
import { readFunds } from '../../src/features/payments/funds.ts'
import type { NewPayment } from '../../src/features/payments/store.ts'
import { sql } from '../../src/platform/db/db.ts'
import { isProblem } from '../../src/platform/errors.ts'
import { type ApiKeyId, newId, type PaymentId } from '../../src/platform/ids.ts'
import { createLog } from '../../src/platform/log.ts'
import { Death } from '../mortal.ts'
import { SimChain } from './chain.ts'
import { type Chance, chanceOf } from './chance.ts'
import { Gate } from './gate.ts'
import { type Liar, liarAbout, themes } from './lies.ts'
import { Model, type PayerKind, payerKinds, type Sold, Violation } from './model.ts'
import { noFaults, SimNode } from './nodes.ts'
import { type Ground, SimProcess } from './process.ts'
import type { Stage } from './stage.ts'
import { type Authorization, signatureOf } from './token.ts'

const hex = (bytes: Uint8Array): Hex => `0x${Buffer.from(bytes).toString('hex')}`
const payTo: Address = `0x${'d'.repeat(40)}`
const price = 10_000n
const clocksApartMs = 90_000
/** Of so many seeds one is flooded. */
const floodedEach = 40
const quietRoundsMax = 90

/** What a seed did, for whoever reads how much was simulated. */
export interface Simulated {
  readonly payments: number
  readonly settled: number
  readonly steps: number
  readonly deaths: number
}

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
  /** One organization has more waiting than a batch carries. */
  readonly #isFlooded: boolean
  readonly #liar: Liar
  #nowMs: number
  #deaths = 0

  constructor(stage: Stage, seed: number) {
    this.#stage = stage
    const chance = chanceOf(seed)
    this.#isFlooded = seed % floodedEach === 0
    this.#chance = chance
    // Just before the end of a day or a month, or at any time.
    this.#nowMs =
      Date.UTC(2026, chance.pick([9, 10, 11]), chance.below(30) + 1, 23, 59, 30) - chance.pick([0, 60_000, 7_200_000])
    const token = stage.network.tokens[0]?.address ?? payTo
    this.#chain = new SimChain(token, chance, BigInt(Math.floor(this.#nowMs / 1_000)), new Map())
    const count = chance.pick([1, 2, 3, 3])
    this.#liar = liarAbout(this.#chain, chance, () => [...this.#model.sold.values()])
    const options = {
      chain: this.#chain,
      chainId: stage.network.chainId,
      settler: stage.signer.address,
      chance,
      liar: this.#liar,
    }
    this.#nodes = Array.from({ length: count }, (_, place) => new SimNode(place, options))
    // Of one node none may lie, of two and three one.
    this.#faulty = count === 1 ? -1 : chance.below(count)
    this.#gate = new Gate(chance, stage.countLocked)
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
    this.#model = new Model(db, this.#chain, network.confirmationDepth)
    this.#apiKeyId = newId('key', { clock: { now: () => new Date(this.#nowMs) }, random: { bytes: chance.bytes } })
    this.#processes = [this.#start(0), this.#start(1)]
  }

  async run(): Promise<Simulated> {
    await this.#stage.clear()
    await this.#stage.setNow(this.#nowMs)
    await this.#chaos(6 + this.#chance.below(8))
    const statuses = await this.#quiet()
    this.#model.checkEnd(statuses)
    const settled = [...statuses.values()].filter((status) => status === 'settled').length
    return { payments: statuses.size, settled, steps: this.#gate.steps, deaths: this.#deaths }
  }

  #start(place: number): SimProcess {
    return new SimProcess(
      this.#ground,
      `process ${place}`,
      place === 0 ? 0 : clocksApartMs * (this.#chance.happens(0.5) ? 1 : -1),
    )
  }

  async #chaos(rounds: number): Promise<void> {
    const isFlooded = this.#isFlooded
    for (let round = 0; round < rounds; round += 1) {
      this.#gate.deaths = this.#chance.pick([0, 0, 4, 15])
      await this.#pass(this.#chance.pick([2_000, 6_000, 12_000, 13_000, 30_000]))
      this.#disturb()
      const buying = this.#chance.below(4) + (isFlooded && round === 1 ? 130 : 0)
      const work = [
        ...Array.from({ length: buying }, () => this.#buy(buying > 100 ? 'poor' : this.#chance.pick(payerKinds))),
        ...this.#working(),
        ...[...this.#model.sold.values()].flatMap((sold) => this.#act(sold)),
      ]
      await this.#drain(work)
      await this.#model.check(false)
    }
  }

  /** Faults end, and time goes on until nothing is open. */
  async #quiet(): Promise<ReadonlyMap<string, string>> {
    this.#gate.deaths = 0
    const liesOn = this.#nodes.length === 3 && this.#chance.happens(0.3)
    this.#nodes.forEach((node, place) => {
      node.faults = liesOn && place === this.#faulty ? { ...noFaults(), lies: 0.5 } : noFaults()
    })
    let statuses = await this.#model.check(false)
    for (let round = 0; round < quietRoundsMax; round += 1) {
      await this.#pass(await this.#nextMs(round))
      await this.#drain(this.#working(round % 2 === 0 ? 0 : this.#chance.below(2)))
      statuses = await this.#model.check(true)
      if (await this.#isOver()) return statuses
    }
    const open = [...statuses]
      .filter(([, status]) => ['verified', 'settling'].includes(status))
      .map(([id, status]) => `${id} (${this.#model.sold.get(id)?.kind}) is ${status}`)
    throw new Violation(`after ${quietRoundsMax} quiet rounds something is open: ${open.join(', ')}`)
  }

  /** Blocks first, then to when something is due. */
  async #nextMs(round: number): Promise<number> {
    if (round % 5 !== 4) return 12_000
    const { at } = await this.#stage.db.one(
      z.object({ at: z.date().nullable() }),
      sql`select least((select min(check_at) from relays where check_at is not null), (select min(check_at) from payments where check_at is not null),
        (select min(next_attempt_at) from relays where state = 'waiting'), (select min(due_at) from relay_turns)) as at`,
    )
    const leftMs = (at?.getTime() ?? 0) - this.#nowMs
    return leftMs > 12_000 ? leftMs + 1_000 : 12_000
  }

  async #isOver(): Promise<boolean> {
    const { open } = await this.#stage.db.one(
      z.object({ open: z.boolean() }),
      sql`select exists (select from payments where status in ('verified', 'settling') or check_at is not null)
        or exists (select from relays where check_at is not null or state in ('waiting', 'included'))
        or exists (select from chain_transactions where status <> 'final') as open`,
    )
    return !open
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

  #disturb(): void {
    const chance = this.#chance
    if (chance.happens(0.2) && this.#chain.blocks.length > 4) {
      this.#chain.reorganize(1 + chance.below(this.#stage.network.confirmationDepth - 1), chance.pick([0, 0, 1]))
      for (const node of this.#nodes) node.sync()
    }
    if (chance.happens(0.05)) this.#chain.forgetWaiting()
    this.#liar.theme = chance.pick(themes)
    this.#nodes.forEach((node, place) => {
      const isFaulty = place === this.#faulty
      node.faults = {
        isDown: chance.happens(isFaulty ? 0.2 : 0.05),
        isLate: chance.happens(isFaulty ? 0.3 : 0.1),
        logBlocksMax: chance.pick([1, 3, 1_000_000, 1_000_000]),
        lies: isFaulty ? chance.pick([0, 0.2, 0.6, 1]) : 0,
        isSilent: isFaulty && chance.happens(0.3),
      }
    })
    this.#processes.forEach((one, place) => {
      if (!one.life.isDead) return
      this.#deaths += 1
      this.#processes[place] = this.#start(place)
    })
  }

  /** What processes do by themselves; of both where it is not said whose. */
  #working(only?: number): Promise<void>[] {
    this.#processes.forEach((one, place) => {
      if (one.life.isDead) this.#processes[place] = this.#start(place)
    })
    const chosen = this.#processes.filter((_, place) => only === undefined || place === only)
    return chosen.flatMap((one) => {
      const tasks = [
        () => one.passRelays(),
        () => one.turnLanes(),
        () => one.voidUnsettled(),
        () => one.findForgotten(),
      ]
      return tasks
        .filter((_, index) => only !== undefined || this.#chance.happens(index === 3 ? 0.2 : 0.8))
        .map((task) => task())
    })
  }

  async #buy(kind: PayerKind): Promise<void> {
    const chance = this.#chance
    const tenant = chance.pick(this.#stage.tenants)
    const from: Address = hex(chance.bytes(20))
    const lasts = kind === 'expires' ? 20 + chance.below(60) : 300 + chance.below(600)
    const authorization = {
      from,
      to: payTo,
      value: price,
      validBefore: BigInt(Math.floor(this.#nowMs / 1_000) + lasts),
      nonce: hex(chance.bytes(32)),
    }
    const { state } = this.#chain.head
    for (const block of this.#chain.blocks) block.state.balances.set(from.toLowerCase(), price)
    if (kind === 'burning-contract') state.burners.add(from.toLowerCase())
    const process = chance.pick(this.#processes)
    const ctx = process.as(tenant, this.#apiKeyId)
    const payment = paymentOf(ctx, this.#stage, {
      authorization,
      isContract: kind.endsWith('contract'),
      apiKeyId: this.#apiKeyId,
    })
    this.#model.sold.set(payment.id, {
      id: payment.id,
      tenant,
      kind,
      authorization,
      askedAtBatches: undefined,
      isWithdrawn: false,
      hasStruck: false,
    })
    await ctx.recordPayment({ ctx, payment, funds: await readFunds(ctx, payment) })
  }

  /** What happens about a payment in a round: its server asks to settle or gives up, and its payer does what it had in mind. */
  #act(sold: Sold): Promise<void>[] {
    const chance = this.#chance
    if (!sold.hasStruck && chance.happens(0.3)) this.#strike(sold)
    const process = chance.pick(this.#processes)
    if (chance.happens(0.5)) return [this.#ask(process, sold)]
    return chance.happens(0.05) ? [this.#withdraw(process, sold)] : []
  }

  async #ask({ deps }: SimProcess, sold: Sold): Promise<void> {
    await deps.settlements.ask(sold.id)
    if (sold.askedAtBatches === undefined) sold.askedAtBatches = this.#model.batches
  }

  async #withdraw(process: SimProcess, sold: Sold): Promise<void> {
    if (await withdrawSettlement(process.as(sold.tenant, this.#apiKeyId), sold.id)) sold.isWithdrawn = true
  }

  #strike(sold: Sold): void {
    const { kind, authorization } = sold
    const { from, nonce } = authorization
    sold.hasStruck = true
    const signature = signatureOf(authorization)
    if (kind === 'poor') this.#chain.addStranger({ kind: 'spend', from, value: price })
    if (kind === 'cancels') this.#chain.addStranger({ kind: 'cancel', from, nonce })
    if (kind === 'takes-on-code') this.#chain.addStranger({ kind: 'take-on-code', from })
    if (kind === 'sends-itself')
      this.#chain.addStranger({ kind: 'transfer', authorization, signature, isContract: false })
    if (kind !== 'signs-twice') return
    const other: Authorization = { ...authorization, to: from, value: 0n }
    this.#chain.addStranger({
      kind: 'transfer',
      authorization: other,
      signature: signatureOf(other),
      isContract: false,
    })
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

/** Also what a database does to two transactions that wait for each other is an outcome that the service repeats. */
function isExpected(error: unknown): boolean {
  return error instanceof Death || isProblem(error)
}

/** A payment about to be recorded; nobody checked its signature. */
export function paymentOf(
  ctx: Ground['deps'],
  { network }: Stage,
  {
    authorization,
    isContract,
    apiKeyId,
  }: { readonly authorization: Authorization; readonly isContract: boolean; readonly apiKeyId: ApiKeyId },
): NewPayment {
  const { from, to, value, validBefore, nonce } = authorization
  const [token] = network.tokens
  if (token === undefined) throw new Error('a network has a token')
  const signature = signatureOf(authorization)
  const id: PaymentId = newId('pay', ctx)
  return {
    id,
    logId: newId('plog', ctx),
    walletId: null,
    apiKeyId,
    protocol: 'x402',
    protocolVersion: 2,
    claimKey: `eip3009:${network.caip2}:${token.address}:${from}:${nonce}`.toLowerCase(),
    door: 'facilitator',
    scheme: 'exact',
    challengeId: null,
    paymentIdentifier: null,
    paymentFingerprint: null,
    chain: network.name,
    network: network.name,
    token: token.symbol,
    asset: token.address,
    decimals: token.decimals,
    rawAmount: value,
    payer: from,
    payTo: to,
    settlement: {
      kind: 'eip3009',
      from,
      to,
      value: value.toString(),
      validAfter: '0',
      validBefore: validBefore.toString(),
      nonce,
      signature: isContract ? { kind: 'bytes', signature } : { kind: 'ecdsa', v: 27, r: signature, s: signature },
      deployment: null,
    },
    validBefore: new Date(Number(validBefore) * 1_000),
    resource: null,
    route: null,
    method: null,
    description: null,
    status: 'verified',
    txHash: null,
    settlingAt: null,
    settledAt: null,
    delivery: null,
    createdAt: ctx.clock.now(),
  }
}
