import type { Address, Hex } from '@purser/protocol'
import { endUnknown, listUnknown } from '../../src/features/transfers/index.ts'
import { moveIndices, overridePolicy } from '../../src/features/wallets/index.ts'
import { type ApiKeyId, newId } from '../../src/platform/ids.ts'
import { createLog } from '../../src/platform/log.ts'
import { takeIntoService } from '../../src/platform/witness/restored.ts'
import { nameOf as nameOfMark } from '../../src/platform/witness/witness.ts'
import { createFakeScreening, type FakeScreening } from '../screening-double.ts'
import { steadyWitness } from '../steady-witness.ts'
import { type Chance, chanceOf } from './chance.ts'
import { type Intent, intentKinds, intentOf, request, sweepAll } from './intents.ts'
import { themes } from './lies.ts'
import { type Bridged, giveBack, isPaidOut, openDeposits, payCoinTo, payOut, type Temper } from './market.ts'
import { marksIn } from './marks.ts'
import { SimNode } from './nodes.ts'
import { Scene } from './scene.ts'
import { Violation } from './violation.ts'
import { countToRevoke, describeOpen, fundsNow, nextWalletWork, openWalletWork } from './wallet-due.ts'
import { WalletModel } from './wallet-model.ts'
import type { Mood } from './wallet-partner.ts'
import { type WalletGround, WalletProcess } from './wallet-process.ts'
import { aWalletChain, depth, endow, type SimWallet, type WalletStage } from './wallet-stage.ts'

const clocksApartMs = 90_000
const quietRoundsMax = 140
/** Quiet rounds in which one of two nodes may still lie. */
const quietLyingRounds = 4

/** The counts of the simulated work of a seed. */
export interface SimulatedWallets {
  readonly intents: number
  readonly moved: number
  readonly steps: number
  readonly deaths: number
  readonly restores: number
}

type Standing = 'clean' | 'listed' | 'pending'

/** One history of managed wallets: two chains, nodes, two processes and their callers, all by the chance of one seed. Throws a `Violation`. */
export class WalletSimulation {
  readonly #stage: WalletStage
  readonly #chance: Chance
  readonly #scene: Scene
  readonly #ground: WalletGround
  readonly #model: WalletModel
  readonly #apiKeyId: ApiKeyId
  readonly #screening: FakeScreening
  readonly #temper: Temper = { pool: 'fair' }
  readonly #mood: Mood = { malice: 0, claimed: [] }
  readonly #processes: WalletProcess[] = []
  readonly #standings = new Map<Address, Standing>()
  /** The rounds in which the database is backed up and restored. */
  readonly #copyAt: number
  readonly #restoreAt: number
  /** The newest when faults ended. */
  #lastBlock = 0
  #count = 0
  #deaths = 0
  #restores = 0

  constructor(stage: WalletStage, seed: number) {
    this.#stage = stage
    const chance = chanceOf(seed)
    this.#chance = chance
    this.#scene = new Scene({
      chance,
      network: stage.near,
      isDeep: seed % 12 === 5,
      setNow: stage.setNow,
      countLocked: stage.countLocked,
      chainAt: (timestamp) => {
        const chain = aWalletChain(stage, stage.near, { chance, timestamp, temper: this.#temper })
        endow(stage, chain, chance)
        return chain
      },
      signed: () => [],
      themes: [...themes, 'hides-deposits', 'hides-deposits', 'hides-deposits'],
    })
    const { chain, nodes, gate, liar } = this.#scene
    const [timestamp, temper] = [chain.head.timestamp, { pool: 'fair' } as const]
    const farChain = aWalletChain(stage, stage.far, { chance, timestamp, temper })
    farChain.head.state.balances.set(`0x${'b2'.repeat(20)}`, 10n ** 15n)
    const farNode = new SimNode(0, { chain: farChain, chainId: stage.far.chainId, chance, liar })
    this.#screening = createFakeScreening(() => new Date(this.#scene.nowMs))
    const marks = new Map<string, Set<string>>()
    this.#ground = {
      db: stage.db,
      deps: stage.deps,
      gate,
      chance,
      log: createLog({ level: process.env.TEST_LOG ?? 'silent' }),
      nowMs: () => this.#scene.nowMs,
      near: { network: stage.near, nodes },
      far: { network: stage.far, nodes: [farNode] },
      chain,
      signer: stage.signer,
      screening: this.#screening,
      marks: marksIn(marks),
      mood: this.#mood,
    }
    this.#scene.onPass = () => {
      for (let count = 0; count < 2; count += 1) farChain.mine(BigInt(Math.floor(this.#scene.nowMs / 1_000)))
      farNode.sync()
      this.#relayBridge(farChain)
    }
    this.#model = new WalletModel(stage.db, chain, { wallets: stage.wallets, hasLiar: this.#scene.hasLiar })
    const clock = { now: () => new Date(this.#scene.nowMs) }
    this.#apiKeyId = newId('key', { clock, random: { bytes: chance.bytes } })
    const isRestored = seed % 5 === 3
    this.#copyAt = isRestored ? 1 + chance.below(3) : -1
    this.#restoreAt = isRestored ? this.#copyAt + 1 + chance.below(3) : -1
  }

  /** A hash of the history up to now. */
  get history(): string {
    return this.#scene.gate.history
  }

  async run(): Promise<SimulatedWallets> {
    await this.#stage.clear()
    await this.#stage.setNow(this.#scene.nowMs)
    await this.#stage.insertKey(this.#apiKeyId)
    const mark = await this.#stage.readMark()
    await this.#ground.marks.create(mark.deployment, nameOfMark(mark))
    await this.#setPolicies()
    for (const place of [0, 1]) this.#processes[place] = await this.#start(place)
    await this.#chaos(7 + this.#chance.below(5))
    await this.#quiet()
    await this.#model.checkEnd()
    await this.#checkSpendable()
    return {
      intents: this.#model.intents.length,
      moved: this.#model.movedCount,
      steps: this.#scene.gate.steps,
      deaths: this.#deaths,
      restores: this.#restores,
    }
  }

  async #start(place: number): Promise<WalletProcess> {
    const ahead = place === 0 ? 0 : clocksApartMs * (this.#chance.happens(0.5) ? 1 : -1)
    const started = new WalletProcess(this.#ground, `process ${place}`, ahead)
    await started.connect(this.#ground)
    return started
  }

  /** Of three families one has a tight cap, one a loose one, and one none. */
  async #setPolicies(): Promise<void> {
    const masters = this.#stage.wallets.filter(({ isChild }) => !isChild)
    const operations = { transfer: { recipients: 'any' }, withdraw: { recipients: 'any' } } as const
    const operator = { ...this.#stage.actingFor(this.#stage.tenant, this.#chance), witness: steadyWitness }
    for (const [index, cap] of [60, 400].entries()) {
      const master = masters[index]
      if (master === undefined) continue
      const tokens = { USDC: { perHour: String(cap), perDay: String(cap * 2) }, ETH: { perDay: '0.3' } }
      await overridePolicy(operator, master.masterId, { operations, tokens })
      this.#model.caps.set(master.masterId, BigInt(cap) * 1_000_000n)
    }
  }

  async #chaos(rounds: number): Promise<void> {
    for (let round = 0; round < rounds; round += 1) {
      this.#scene.gate.deaths = this.#chance.pick([0, 0, 4, 15])
      await this.#scene.pass(this.#chance.pick([2_000, 6_000, 12_000, 13_000, 30_000]))
      if (this.#scene.disturb()) this.#model.shake()
      await this.#revive()
      if (round === this.#copyAt) await this.#stage.states.keep('copy')
      if (round === this.#restoreAt) await this.#restore()
      this.#unsettle()
      this.#pay()
      await this.#scene.drain([...this.#requests(1 + this.#chance.below(4)), ...this.#sweeps(), ...this.#working()])
      await this.#model.check()
    }
  }

  /** Faults end, and time goes on until nothing is open. */
  async #quiet(): Promise<void> {
    const liesOn = this.#scene.calm()
    this.#lastBlock = this.#scene.chain.head.number
    this.#temper.pool = 'fair'
    this.#mood.malice = 0
    this.#scene.chain.baseFee = 1_000_000_000n
    for (const [sender, standing] of this.#standings) if (standing === 'pending') this.#list(sender, 'clean')
    for (let round = 0; round < quietRoundsMax; round += 1) {
      const isHealed = !liesOn || this.#scene.nodes.length > 2 || round > quietLyingRounds
      if (isHealed) this.#scene.heal()
      await this.#revive()
      if (this.#isBehind) await this.#takeIntoService()
      await this.#scene.pass(await this.#nextMs(round))
      await this.#scene.drain(this.#working(round % 2))
      await this.#model.check()
      if (this.#restores > 0) await this.#decideUnknown()
      if (round > quietLyingRounds && (await this.#openWork()).length === 0) return
    }
    const open = (await this.#openWork()).join(', ')
    throw new Violation(
      `after ${quietRoundsMax} quiet rounds there is open: ${open}\n${await describeOpen(this.#stage.db)}`,
    )
  }

  #openWork(): Promise<readonly string[]> {
    return openWalletWork(this.#stage.db, Math.max(this.#lastBlock, this.#model.newestMovement))
  }

  /** Blocks first, then to when something is due. */
  async #nextMs(round: number): Promise<number> {
    if (round <= quietLyingRounds + 4 || round % 3 !== 2) return 12_000
    const leftMs = ((await nextWalletWork(this.#stage.db))?.getTime() ?? 0) - this.#scene.nowMs
    return leftMs > 12_000 ? leftMs + 1_000 : 12_000
  }

  async #revive(): Promise<void> {
    for (const [place, one] of this.#processes.entries()) {
      if (!one.life.isDead) continue
      this.#deaths += 1
      this.#processes[place] = await this.#start(place)
    }
  }

  /** Runs the recurring tasks of one process, or of all processes without an argument. */
  #working(only?: number): Promise<void>[] {
    const chosen = this.#processes.filter((_, place) => only === undefined || place === only)
    return chosen.flatMap((one) =>
      one
        .tasks()
        .filter((_, index) => only !== undefined || this.#chance.happens(index < 3 ? 0.8 : 0.4))
        .map((task) => task()),
    )
  }

  #requests(count: number): Promise<void>[] {
    return Array.from({ length: count }, () => {
      const intent = this.#intend()
      this.#model.intents.push(intent)
      const process = this.#chance.pick(this.#processes)
      return request(process.as(this.#stage.tenant, this.#apiKeyId), intent, this.#stage.bankAccountId)
    })
  }

  #intend(): Intent {
    const { chance } = this.#ground
    this.#count += 1
    const wallet = chance.pick(this.#stage.wallets)
    const kind = chance.pick(intentKinds)
    const recipient = this.#recipient(wallet)
    const isListed = kind !== 'withdrawal' && this.#standings.get(recipient) === 'listed'
    const facts = { requestedAtMs: this.#scene.nowMs, era: this.#model.era, count: this.#count, chance }
    return intentOf({ kind, wallet, recipient, isListed, ...facts })
  }

  #recipient({ masterId, isChild }: SimWallet): Address {
    const { chance } = this.#ground
    const listed = [...this.#standings].flatMap(([address, standing]) => (standing === 'listed' ? [address] : []))
    if (listed.length > 0 && chance.happens(0.1)) return chance.pick(listed)
    const own = this.#stage.wallets.filter((one) => one.masterId === masterId && one.isChild !== isChild)
    return chance.happens(0.15) ? chance.pick(own).address : this.#stranger()
  }

  #stranger(): Address {
    return `0x${Buffer.from(this.#chance.bytes(20)).toString('hex')}`
  }

  #sweeps(): Promise<void>[] {
    if (!this.#chance.happens(0.25)) return []
    const process = this.#chance.pick(this.#processes)
    return [sweepAll(process.as(this.#stage.tenant, this.#apiKeyId), this.#chance.pick(this.#stage.wallets))]
  }

  /** Other accounts pay wallets. Some are listed, some cannot be screened yet. */
  #pay(): void {
    const { chance } = this.#ground
    const { chain } = this.#scene
    if (chance.happens(0.1)) payCoinTo(chain, chance, chance.pick(this.#stage.wallets).address)
    if (!chance.happens(0.5)) return
    this.#count += 1
    const [wallet, sender] = [chance.pick(this.#stage.wallets), this.#stranger()]
    const standing = chance.pick<Standing>(['clean', 'clean', 'listed', 'pending'])
    this.#list(sender, standing)
    const rawAmount = 3_000_000n + BigInt(chance.below(30)) * 1_000_000n + BigInt(this.#count)
    chain.head.state.balances.set(sender.toLowerCase(), rawAmount)
    chain.addStranger({ kind: 'pay', from: sender, to: wallet.address, value: rawAmount })
    this.#model.inflows.push({ wallet, sender, rawAmount, isDirty: standing !== 'clean' })
  }

  /** A new list, on which this account is or not. */
  #list(account: Address, standing: Standing): void {
    this.#standings.set(account, standing)
    const answers = {
      clean: { result: 'clear', reason: 'clean', oracle: 'clean' },
      listed: { result: 'flagged', reason: 'listed', oracle: 'clean' },
      pending: { result: 'pending', reason: 'sandbox', oracle: 'unknown', simulatesNoSource: true },
    } as const
    this.#screening.setResult(account, answers[standing])
    this.#screening.swapList([account.toLowerCase()])
    for (const inflow of this.#model.inflows)
      if (inflow.sender === account && standing === 'clean') inflow.isDirty = false
  }

  /** Partners, fees and lists change at any time. */
  #unsettle(): void {
    const { chance } = this.#ground
    this.#temper.pool = chance.pick(['fair', 'fair', 'fair', 'short', 'reverts'])
    this.#mood.malice = chance.pick([0, 0, 0.1, 0.5])
    this.#scene.chain.baseFee = chance.pick([1n, 1n, 1n, 3n, 8n]) * 1_000_000_000n
    for (const [account, standing] of this.#standings)
      if (chance.happens(0.05)) this.#list(account, standing === 'clean' || chance.happens(0.5) ? 'listed' : standing)
    if (chance.happens(0.2))
      this.#list(chance.pick(this.#model.intents.map(({ recipient }) => recipient).concat(this.#stranger())), 'listed')
  }

  /** The bridge's relayer: it pays out, refunds or delays. */
  #relayBridge(far: Parameters<typeof payOut>[0]): void {
    const { chance } = this.#ground
    const { chain } = this.#scene
    for (const one of openDeposits(chain, chain.finalNumber)) {
      if (isPaidOut(far, one) || (this.#scene.isChaos && chance.happens(0.5))) continue
      if (this.#scene.isChaos && chance.happens(0.3)) this.#giveBack(one)
      else payOut(far, one, this.#scene.isChaos && chance.happens(0.1) ? 1n : one.rawOutMin)
    }
  }

  #giveBack(one: Bridged): void {
    giveBack(this.#scene.chain, one, this.#chance.pick([0n, 100n]))
    const hashes: Hex[] = this.#scene.chain.blocks.flatMap(({ receipts }) => [...receipts.keys()] as Hex[])
    if (hashes.length > 0) this.#mood.claimed.push(this.#chance.pick(hashes))
  }

  /** An older database takes the place of the present one; every process of the present one is gone. */
  async #restore(): Promise<void> {
    for (const one of this.#processes) one.life.isDead = true
    await this.#stage.states.putBack('copy')
    this.#restores += 1
    this.#model.restored()
    await this.#revive()
    // Nothing leaves before the operator says so.
    await this.#scene.drain([...this.#requests(1), ...this.#working()])
    await this.#model.check()
    await this.#takeIntoService()
  }

  get #isBehind(): boolean {
    return this.#restores > 0 && this.#processes.some((one) => !one.deps.witness.isCurrent())
  }

  async #takeIntoService(): Promise<void> {
    const { db, marks, chance } = this.#ground
    const acting = { db, clock: { now: () => new Date(this.#scene.nowMs) }, random: { bytes: chance.bytes } }
    await takeIntoService({
      ...{
        ...acting,
        marks,
        isForced: false,
        sequenceGap: 1_000,
        actor: { kind: 'operator' },
        requestId: newId('req', acting),
      },
      move: async (tx) => ({ moved: await moveIndices(tx, { children: 1, accounts: 1 }) }),
    })
    for (const one of this.#processes) await one.connect(this.#ground)
  }

  /** The operator checks the chain and ends the transfers that a restore made unknown. */
  async #decideUnknown(): Promise<void> {
    const [process] = this.#processes
    if (process === undefined) return
    const ctx = this.#stage.actingFor(this.#stage.tenant, this.#chance)
    for (const { transfer } of await listUnknown(this.#stage.db, 10)) {
      const out = this.#model.outOf(transfer)
      if (out !== undefined && out.block.number > this.#scene.chain.finalNumber) continue
      const finding = out === undefined ? 'not-moved' : { movedBy: out.receipt.transaction.hash }
      await endUnknown({ ...ctx, db: this.#stage.db, clock: process.deps.clock }, transfer.id, finding)
    }
  }

  /** Approvals that a wallet could not pay to revoke are left in place and tried again after ten minutes. Their amounts stay reserved until then. */
  async #revokeLeft(): Promise<void> {
    for (let round = 0; round < quietRoundsMax; round += 1) {
      if ((await countToRevoke(this.#stage.db)) === 0n) return
      await this.#scene.pass(round === 0 ? 700_000 : 12_000)
      await this.#scene.drain(this.#working(round % 2))
    }
  }

  /** Nothing is reserved any more, and what may be spent or is on hold is all that there is. */
  async #checkSpendable(): Promise<void> {
    const [process] = this.#processes
    if (process === undefined || this.#model.isForgiving) return
    const { near, tenant, wallets } = this.#stage
    for (let count = 0; count < depth; count += 1) await this.#scene.pass(6_000)
    await this.#scene.drain(this.#working(0))
    await this.#scene.drain(this.#working(1))
    await this.#revokeLeft()
    await this.#scene.drain([
      fundsNow(process.deps, { tenant, network: near, wallets }).then((found) => {
        for (const [index, wallet] of wallets.entries()) this.#model.checkFunds(wallet, found[index])
      }),
    ])
  }
}
