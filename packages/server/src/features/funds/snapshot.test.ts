import { type Address, type Network, networkByName, tokenBySymbol } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { counting } from '../../../test/counting-db.ts'
import { aWorld, type World } from '../../../test/world.ts'
import { fail } from '../../chain/errors.ts'
import type { Chain, Chains, StateQuestion } from '../../chain/port.ts'
import type { Tenant } from '../../platform/ctx.ts'
import type { Db } from '../../platform/db/db.ts'
import { isProblem } from '../../platform/errors.ts'
import { createReadFunds } from './snapshot.ts'
import { insertReservations, type WalletAsset } from './store.ts'

const network = networkByName('base-sepolia') as Network
const usdc = tokenBySymbol(network, 'USDC') as WalletAsset['coin']
const ether = { symbol: 'ETH', decimals: 18, address: undefined }

let world: World
let tenants: readonly [Tenant, Tenant]

beforeAll(async () => {
  world = await aWorld({ config: { role: 'api' }, rpcUrls: { 'base-sepolia': ['http://127.0.0.1:1'] } })
  const [first, second] = [await world.organisation(), await world.organisation()]
  tenants = [
    { organisationId: first.id, environment: 'test' },
    { organisationId: second.id, environment: 'test' },
  ]
})
afterAll(() => world?.stop())

function assetOf(index: number, coin: WalletAsset['coin'] = usdc, tenant: Tenant = tenants[0]): WalletAsset {
  const owner: Address = `0x${(0xabc000 + index).toString(16).padStart(40, '0')}`
  return { tenant, network, walletId: `mwt_${index}`, owner, coin }
}

/** A quorum that returns a thousand of everything, except for accounts on which it disagrees, and a database that counts statements. */
function aStage({
  disputed = [],
  questionsMax = 1_000,
}: {
  disputed?: readonly Address[]
  questionsMax?: number
} = {}) {
  const { db, statements } = counting(world.database.db)
  const reads: (readonly StateQuestion[])[] = []
  const chain: Pick<Chain, 'offeredFees' | 'stateAt'> = {
    offeredFees: async () => ({ maxFee: 2n, priorityFee: 1n, baseFee: 1n, l1Fee: 0n, dataGas: 0n }),
    async stateAt(questions) {
      reads.push(questions)
      if (questions.length > questionsMax) throw fail('chain-unavailable')
      const block = { number: 10n, hash: `0x${'1'.repeat(64)}` as const, timestampSeconds: 1n }
      const values = questions.map((question) => {
        if ('count' in question) return 0n
        return disputed.includes(question.account) ? undefined : 1_000n
      })
      return { block, newest: 10n, values }
    },
  }
  const chains = { on: () => chain } as unknown as Chains
  const deposits = { ...world.server.deps.deposits, bookedTo: async () => 10n }
  const deps = { db, chains, deposits }
  return { deps, readFunds: createReadFunds(deps), statements, reads }
}

async function reserve(asset: WalletAsset, rawAmount: bigint): Promise<void> {
  const { owner, coin, tenant } = asset
  const row = { asset, reason: 'transfer', subjectId: `of-${owner}-${coin.symbol}`, part: 0 } as const
  const cost = { rawAmount, gasLimit: 0n, dataBytes: 0, transactionId: null, authorizationNonce: null }
  await world.database.db.tx((tx) => insertReservations(tx, tenant, [{ ...row, ...cost }]))
}

test('a hundred concurrent callers cost the database and the nodes one read, and each gets its own amounts', async () => {
  const callers = Array.from({ length: 100 }, (_, index) => assetOf(index, usdc, tenants[index % 2 === 0 ? 0 : 1]))
  for (const asset of callers.slice(0, 10)) await reserve(asset, 7n)
  const lone = aStage()
  await lone.readFunds(network, [assetOf(0), assetOf(0, ether)])
  const many = aStage()
  const read = await Promise.all(
    callers.map((asset, index) => many.readFunds(network, [asset, assetOf(index, ether, asset.tenant)])),
  )
  expect([many.statements.length, many.reads.length]).toEqual([lone.statements.length, 1])
  expect(lone.statements).toHaveLength(3)
  for (const [index, { spendable }] of read.entries())
    expect(
      spendable.map(({ available }) => available),
      String(index),
    ).toEqual([index < 10 ? 993n : 1_000n, 1_000n])
})

test('a balance on which the nodes disagree fails its own caller and no other', async () => {
  const [own, other] = [assetOf(200), assetOf(201)]
  const { readFunds } = aStage({ disputed: [own.owner] })
  const [failed, read] = await Promise.allSettled([own, other].map((asset) => readFunds(network, [asset])))
  expect(failed?.status === 'rejected' && isProblem(failed.reason, 'chain-unavailable')).toBe(true)
  expect(read).toMatchObject({ status: 'fulfilled', value: { spendable: [{ available: 1_000n }] } })
})

test('a tenant with many signatures that are not used is read by itself, and its failure is nobody else’s', async () => {
  const [large, small] = [assetOf(500), assetOf(501, usdc, tenants[1])]
  const row = { asset: large, reason: 'transfer', part: 0, rawAmount: 1n, gasLimit: 0n, dataBytes: 0 } as const
  const rows = Array.from({ length: 101 }, (_, index) => ({
    ...row,
    subjectId: `of-many-${index}`,
    transactionId: null,
    authorizationNonce: Buffer.alloc(32, index + 1),
  }))
  await world.database.db.tx((tx) => insertReservations(tx, tenants[0], rows))
  const { readFunds, reads } = aStage({ questionsMax: 50 })
  for (let time = 0; time < 2; time += 1) {
    const [failed, read] = await Promise.allSettled([large, small].map((asset) => readFunds(network, [asset])))
    expect(failed?.status === 'rejected' && isProblem(failed.reason, 'chain-unavailable')).toBe(true)
    expect(read).toMatchObject({ status: 'fulfilled', value: { spendable: [{ available: 1_000n }] } })
  }
  expect(reads.map(({ length }) => length).sort((left, right) => left - right)).toEqual([1, 1, 102, 102])
})

test('a call with many assets does not take its tenant’s other calls out of the shared read', async () => {
  const { readFunds, reads } = aStage()
  await readFunds(
    network,
    Array.from({ length: 101 }, (_, index) => assetOf(600 + index)),
  )
  await Promise.all([assetOf(600), assetOf(701, usdc, tenants[1])].map((asset) => readFunds(network, [asset])))
  expect(reads.map(({ length }) => length)).toEqual([101, 2])
})

test('a tenant returns to the shared read a minute after it had many signatures', async () => {
  const large = assetOf(500)
  const { deps, reads } = aStage()
  let laterMs = 0
  const later = <T>(row: T): T =>
    Object(row).readAt instanceof Date ? { ...row, readAt: new Date(Object(row).readAt.getTime() + laterMs) } : row
  const db: Db = { ...deps.db, many: async (row, statement) => (await deps.db.many(row, statement)).map(later) }
  const readFunds = createReadFunds({ ...deps, db })
  const together = () =>
    Promise.all([assetOf(700), assetOf(701, usdc, tenants[1])].map((asset) => readFunds(network, [asset])))
  await readFunds(network, [large])
  await together()
  laterMs = 61_000
  await together()
  await together()
  expect(reads.map(({ length }) => length)).toEqual([102, 1, 1, 1, 1, 2])
})

test('the signatures of an asset are read only for that asset', async () => {
  const unsigned = assetOf(500, ether)
  const { readFunds, reads } = aStage()
  expect((await readFunds(network, [unsigned])).spendable[0]?.available).toBe(1_000n)
  expect(reads.map(({ length }) => length)).toEqual([1])
})

test('a caller whose own reservation is excluded sees the amount that it reserved, and a concurrent caller does not', async () => {
  const asset = assetOf(300)
  await reserve(asset, 40n)
  const { readFunds } = aStage()
  const [without, all] = await Promise.all([
    readFunds(network, [{ ...asset, except: `of-${asset.owner}-USDC` }]),
    readFunds(network, [asset]),
  ])
  expect([without.spendable[0]?.available, all.spendable[0]?.available]).toEqual([1_000n, 960n])
})

test('a read before the first block is booked waits for it, and fails if none is booked in time', async () => {
  const reading = async (isBookedInTime: boolean) => {
    const { deps } = aStage()
    let booked: bigint | undefined
    const deposits = {
      ...deps.deposits,
      bookedTo: async () => booked,
      isBookedInTime: async () => {
        if (isBookedInTime) booked = 10n
        return isBookedInTime
      },
    }
    return createReadFunds({ ...deps, deposits })(network, [assetOf(400)])
  }
  expect((await reading(true)).spendable[0]?.available).toBe(1_000n)
  await expect(reading(false)).rejects.toMatchObject({ code: 'chain-unavailable' })
})
