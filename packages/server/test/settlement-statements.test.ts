import type { Address } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newId } from '../src/platform/ids.ts'
import { createLog } from '../src/platform/log.ts'
import { counting } from './counting-db.ts'
import { freshDatabase } from './database.ts'
import { chanceOf } from './sim/chance.ts'
import { Gate } from './sim/gate.ts'
import { liarAbout } from './sim/lies.ts'
import { newPaymentOf } from './sim/new-payment.ts'
import { SimNode } from './sim/nodes.ts'
import { SimProcess } from './sim/process.ts'
import { aChain, aStage, type Stage } from './sim/stage.ts'

let stage: Stage

beforeAll(async () => {
  stage = await aStage(await freshDatabase())
})
afterAll(() => stage?.stop())

test('a lone payment is planned, sent and settled in a bounded number of statements', async () => {
  const { deps, network, signer } = stage
  const [tenant] = stage.tenants
  if (tenant === undefined) throw new Error('there is no organisation')
  const chance = { ...chanceOf(1), happens: (share: number) => share > 0 }
  let nowMs = Date.UTC(2026, 10, 3, 12)
  await stage.clear()
  await stage.setNow(nowMs)
  const payTo: Address = `0x${'d'.repeat(40)}`
  const from: Address = `0x${'a'.repeat(40)}`
  const chain = aChain(stage, chance, BigInt(nowMs / 1_000))
  chain.head.state.balances.set(from, 9n)
  const node = new SimNode(0, {
    chain,
    chainId: network.chainId,
    chance,
    liar: liarAbout(chain, chance, () => []),
  })
  const gate = new Gate(chance, stage.countLocked, () => undefined)
  const { db, statements } = counting(stage.db)
  const log = createLog({ level: 'silent' })
  const ground = { db, deps, network, signer, nodes: [node], gate, chance, log, nowMs: () => nowMs }
  const process = new SimProcess(ground, 'process', 0)
  const mine = async () => {
    nowMs += 12_000
    await stage.setNow(nowMs)
    for (let block = 0; block <= network.confirmationDepth; block += 1) chain.mine(BigInt(nowMs / 1_000))
    node.sync()
  }
  const counted = async (work: () => Promise<void>): Promise<number> => {
    const before = statements.length
    await gate.drain([work()])
    return statements.length - before
  }
  const apiKeyId = newId('key', deps)
  const ctx = process.as(tenant, apiKeyId)
  const settleOne = async (nonce: number) => {
    const authorization = {
      from,
      to: payTo,
      value: 1n,
      validBefore: BigInt(nowMs / 1_000 + 3_600),
      nonce: `0x${nonce.toString(16).padStart(64, '0')}` as const,
    }
    const payment = newPaymentOf(ctx, stage, {
      signed: { form: 'eip3009', authorization },
      kind: 'honest',
      entryPoint: 'verify',
      claimKey: String(nonce),
      challengeId: '',
    })
    await gate.drain([ctx.recordPayment({ ctx, payment })])
    const requested = await counted(() => process.deps.settlements.request(payment.id))
    const planned = await counted(() => process.passRelays())
    const sent = await counted(() => process.turnLanes())
    await mine()
    const settled = await counted(() => process.turnLanes())
    const idle = await counted(() => process.passRelays())
    return { requested, planned, sent, settled, idle }
  }
  // The first settlement of a process also reads the settler's first nonce, and begins the organisation's log.
  await settleOne(1)
  const counts = await settleOne(2)
  const most = { requested: 1, planned: 11, sent: 10, settled: 15, idle: 1 }
  for (const [step, count] of Object.entries(counts))
    expect(count, `${step}: ${JSON.stringify(counts)}`).toBeLessThanOrEqual(most[step as keyof typeof most])
}, 60_000)
