import type { Address } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { createTransfer } from '../src/features/transfers/transfer.ts'
import { sql } from '../src/platform/db/db.ts'
import { leaseHandle } from '../src/platform/http/idempotency.ts'
import { newId } from '../src/platform/ids.ts'
import { createLog } from '../src/platform/log.ts'
import { nameOf as nameOfMark } from '../src/platform/witness/witness.ts'
import { counting } from './counting-db.ts'
import { freshDatabase } from './database.ts'
import { createFakeScreening } from './screening-double.ts'
import { chanceOf } from './sim/chance.ts'
import { Gate } from './sim/gate.ts'
import { liarAbout } from './sim/lies.ts'
import { marksIn } from './sim/marks.ts'
import { SimNode } from './sim/nodes.ts'
import { type WalletGround, WalletProcess } from './sim/wallet-process.ts'
import { aWalletChain, aWalletStage, endow, type WalletStage } from './sim/wallet-stage.ts'

let stage: WalletStage

beforeAll(async () => {
  stage = await aWalletStage(await freshDatabase())
})
afterAll(() => stage?.stop())

const atOnce = 8
const recipient: Address = `0x${'d'.repeat(40)}`

test('eight concurrent transfers of a wallet are stored, sent and ended in a bounded number of statements', async () => {
  const { near: network, far, signer, deps, tenant } = stage
  const [wallet] = stage.wallets.filter(({ isChild }) => !isChild)
  if (wallet === undefined) throw new Error('there is no wallet')
  const chance = { ...chanceOf(1), happens: (share: number) => share > 0 }
  let nowMs = Date.UTC(2026, 10, 3, 12)
  await stage.clear()
  await stage.setNow(nowMs)
  const timestamp = BigInt(nowMs / 1_000)
  const [chain, farChain] = [network, far].map((one) =>
    aWalletChain(stage, one, { chance, timestamp, temper: { pool: 'fair' } }),
  )
  if (chain === undefined || farChain === undefined) throw new Error('there is no chain')
  endow(stage, chain, chance)
  const nodeOf = (of: typeof chain, { chainId }: typeof network) =>
    new SimNode(0, { chain: of, chainId, chance, liar: liarAbout(of, chance, () => []) })
  const node = nodeOf(chain, network)
  const gate = new Gate(chance, stage.countLocked, () => undefined)
  gate.passTime = async (ms) => {
    nowMs += ms
    await stage.setNow(nowMs)
  }
  const { db, statements } = counting(stage.db)
  const ground: WalletGround = {
    db,
    deps,
    gate,
    chance,
    log: createLog({ level: 'silent' }),
    nowMs: () => nowMs,
    near: { network, nodes: [node] },
    far: { network: far, nodes: [nodeOf(farChain, far)] },
    chain,
    signer,
    screening: createFakeScreening(() => new Date(nowMs)),
    marks: marksIn(new Map()),
    mood: { malice: 0, claimed: [] },
  }
  const mark = await stage.readMark()
  await ground.marks.create(mark.deployment, nameOfMark(mark))
  const process = new WalletProcess(ground, 'process', 0)
  await process.connect(ground)
  const apiKeyId = newId('key', { clock: process.deps.clock, random: { bytes: chance.bytes } })
  await stage.insertKey(apiKeyId)
  const ctx = process.as(tenant, apiKeyId)
  const [turnLanes, watch] = process.tasks()
  if (turnLanes === undefined || watch === undefined) throw new Error('a process has tasks')
  const mine = async () => {
    nowMs += 12_000
    await stage.setNow(nowMs)
    for (let block = 0; block <= network.confirmationDepth; block += 1) chain.mine(BigInt(nowMs / 1_000))
    node.sync()
    await gate.drain([watch()])
  }
  const counted = async (work: readonly (() => Promise<unknown>)[]): Promise<number> => {
    const before = statements.length
    await gate.drain(work.map(async (one) => void (await one())))
    return statements.length - before
  }
  const usual = {
    fromWalletId: wallet.id,
    fromToken: 'USDC',
    toAddress: recipient,
    toChain: 'ethereum',
    toToken: 'USDC',
  }
  const transferSome = async (amount: string, keys: readonly string[] = []) => {
    const requests = Array.from({ length: atOnce }, (_, index) => () => {
      const key = keys[index]
      const idempotency = key === undefined ? undefined : leaseHandle(ctx, { key, fingerprint: Buffer.from(key) }, key)
      return createTransfer({ ...ctx, idempotency }, { ...usual, amount } as Parameters<typeof createTransfer>[1])
    })
    const stored = await counted(requests)
    const sent = await counted([turnLanes])
    await mine()
    const ended = await counted([turnLanes])
    return { stored, sent, ended }
  }
  await mine()
  // The first ones of a process also resume the lane, read its first nonce, and begin the organisation's log.
  await transferSome('1')
  const counts = await transferSome('2')
  const states = await stage.db.many(
    z.object({ status: z.string(), isEnded: z.boolean() }),
    sql`select status, ended_at is not null as is_ended from transfers`,
  )
  expect(states).toEqual(states.map(() => ({ status: 'confirmed', isEnded: true })))
  expect(states).toHaveLength(2 * atOnce)
  const most = { stored: 20, sent: 11, ended: 11 }
  for (const [step, count] of Object.entries(counts))
    expect(count, `${step}: ${JSON.stringify(counts)}`).toBeLessThanOrEqual(most[step as keyof typeof most])

  const keys = Array.from({ length: atOnce }, (_, index) => `key ${index}`)
  await stage.db.run(sql`
    insert into idempotency_keys (organisation_id, environment, key, fingerprint, api_key_id, state, claim, created_at)
    select ${tenant.organisationId}, ${tenant.environment}, key, convert_to(key, 'UTF8'), '', 'running', key, now()
    from unnest(${keys}::text[]) as given (key)`)
  const keyed = await transferSome('3', keys)
  const ties = 1
  expect(keyed.stored, JSON.stringify(keyed)).toBeLessThanOrEqual(most.stored + ties)
  expect(await stage.db.run(sql`select from idempotency_keys join transfers on transfers.id = resource_id`)).toBe(
    atOnce,
  )
}, 60_000)
