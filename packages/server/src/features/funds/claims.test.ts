import { type Address, networkByName, tokenBySymbol } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aWorld, type Org, type World } from '../../../test/world.ts'
import type { Tenant } from '../../platform/ctx.ts'
import { sql } from '../../platform/db/db.ts'
import { newId } from '../../platform/ids.ts'
import { pruneReservations } from './index.ts'
import { areCovered, type FundsClaim } from './needs.ts'
import { type Snapshot, spendableOf } from './snapshot.ts'
import {
  type Allowed,
  assignReservations,
  deleteEnded,
  endAllowances,
  endReservations,
  insertReservations,
  keepAllowances,
  markAllowancesGone,
  markReservationsEnded,
  type NewReservation,
  readUnderWay,
  type WalletAsset,
} from './store.ts'

const network = networkByName('base-sepolia')
const usdc = network && tokenBySymbol(network, 'USDC')
if (network === undefined || usdc === undefined || network.nativeCoin === null) throw new Error('no such token')
const ether = { ...network.nativeCoin, address: undefined }

let world: World
let org: Org
let tenant: Tenant

beforeAll(async () => {
  world = await aWorld({ config: { role: 'api' }, rpcUrls: { 'base-sepolia': ['http://127.0.0.1:1'] } })
  org = await world.organisation()
  tenant = { organisationId: org.id, environment: 'test' }
})
afterAll(() => world?.stop())

let accounts = 0
function anAccount(): Address {
  accounts += 1
  return `0x${accounts.toString(16).padStart(40, '0')}`
}

function assetOf(owner: Address, coin: WalletAsset['coin'] = usdc as WalletAsset['coin']): WalletAsset {
  if (network === undefined) throw new Error('no network')
  return { tenant, network, walletId: 'mwt_none', owner, coin }
}

interface Seen {
  readonly balance: bigint
  readonly nonce?: bigint
  readonly used?: readonly bigint[]
  readonly allowed?: readonly Allowed[]
  readonly ageMs?: number
  readonly block?: bigint
}

/** A snapshot as a quorum would report it. */
async function snapshotOf(
  owner: Address,
  { balance, nonce = 0n, used = [], allowed = [], ageMs = 0, block = 10n }: Seen,
): Promise<Snapshot> {
  const { readAt: now } = await readUnderWay(world.database.db, 'base-sepolia', [])
  const balances = new Map([
    ['USDC', balance],
    ['ETH', balance],
  ])
  if (network === undefined) throw new Error('no network')
  return {
    ...{
      network,
      block,
      blockHash: `0x${'1'.repeat(64)}` as const,
      newest: block,
      readAt: new Date(now.getTime() - ageMs),
    },
    fees: { maxFee: 2n, priorityFee: 1n, baseFee: 1n, l1Fee: 0n, dataGas: 0n },
    owners: new Map([[owner, { nonce, balances, used, allowed }]]),
  }
}

let subjects = 0

async function reserve(owner: Address, own: Partial<NewReservation> = {}): Promise<string> {
  subjects += 1
  const subjectId = `subject-${subjects}`
  const usual = { asset: assetOf(owner), reason: 'transfer', subjectId, part: 0 } as const
  const cost = { rawAmount: 40n, gasLimit: 0n, dataBytes: 0, transactionId: null, authorizationNonce: null }
  await world.database.db.tx((tx) => insertReservations(tx, tenant, [{ ...usual, ...cost, ...own }]))
  return own.subjectId ?? subjectId
}

/** A transaction of a lane with this nonce. */
async function aTransaction(sender: Address, nonce: bigint, status = 'sent') {
  const id = newId('ctx', world.server.deps)
  await world.database.db.run(sql`
    insert into chain_transactions (id, network, sender, nonce, to_address, data, value, gas_limit, purpose, status, created_at)
    values (${id}, 'base-sepolia', ${sender}, ${nonce}, ${sender}, '', 0, 21000, 'test', ${status}, now())`)
  return id
}

async function available(snapshot: Snapshot, asset: WalletAsset): Promise<bigint> {
  const [spendable] = await spendableOf(world.database.db, world.server.deps, [{ snapshot, asset }])
  return spendable?.available ?? -1n
}

test('a reservation counts until the block of the balance includes its nonce, whatever the rows record', async () => {
  const owner = anAccount()
  const transactionId = await aTransaction(owner, 5n)
  await reserve(owner, { transactionId })
  expect(await available(await snapshotOf(owner, { balance: 100n, nonce: 5n }), assetOf(owner))).toBe(60n)
  expect(await available(await snapshotOf(owner, { balance: 60n, nonce: 6n }), assetOf(owner))).toBe(60n)
  expect(await available(await snapshotOf(owner, { balance: 100n, nonce: 5n }), assetOf(owner)), 'undone').toBe(60n)
})

test('a step without a nonce counts however many transactions its account has sent, and with a nonce it counts like the others', async () => {
  const owner = anAccount()
  const subjectId = await reserve(owner, { part: 1 })
  expect(await available(await snapshotOf(owner, { balance: 100n, nonce: 9n }), assetOf(owner))).toBe(60n)
  const transactionId = await aTransaction(owner, 9n)
  await world.database.db.tx((tx) => assignReservations(tx, { subjectId, part: 1 }, transactionId))
  expect(await available(await snapshotOf(owner, { balance: 100n, nonce: 9n }), assetOf(owner))).toBe(60n)
  expect(await available(await snapshotOf(owner, { balance: 60n, nonce: 10n }), assetOf(owner))).toBe(60n)
})

async function seqOf(subjectId: string): Promise<bigint> {
  const statement = sql`select seq from reservations where subject_id = ${subjectId}`
  return (await world.database.db.one(z.object({ seq: z.bigint() }), statement)).seq
}

test('a step whose contract has an allowance counts with what is left of it after its nonce, and wholly where no quorum knows that', async () => {
  const owner = anAccount()
  const transactionId = await aTransaction(owner, 5n)
  const spender = '0xABCDEF'
  const subjectId = await reserve(owner, { transactionId, spender })
  const seq = await seqOf(subjectId)
  const left = async (nonce: bigint, allowed: readonly Allowed[]): Promise<bigint> =>
    available(await snapshotOf(owner, { balance: 100n, nonce, allowed }), assetOf(owner))
  expect(await left(5n, [{ seq, raw: 0n }]), 'its call is not in the block').toBe(60n)
  expect(await left(6n, [{ seq, raw: 40n }]), 'it has failed').toBe(60n)
  expect(await left(6n, [{ seq, raw: 7n }]), 'it took a part').toBe(93n)
  expect(await left(6n, [{ seq, raw: 1_000n }]), 'another approved more').toBe(60n)
  expect(await left(6n, []), 'no quorum').toBe(60n)
  expect(await left(6n, [{ seq, raw: 0n }])).toBe(100n)
  expect((await readUnderWay(world.database.db, 'base-sepolia', [{ owner, asset: 'USDC' }])).allowances).toEqual([
    { seq, owner, asset: 'USDC', spender: '0xabcdef' },
  ])
  await endAllowances(world.database.db, [subjectId])
  expect(await left(6n, [])).toBe(100n)
})

test('steps at one contract count together with what is left of its allowance, and those at another by themselves', async () => {
  const owner = anAccount()
  const seqs: bigint[] = []
  for (const spender of ['0xabc', '0xabc', '0xdef']) {
    const subjectId = await reserve(owner, { transactionId: await aTransaction(owner, BigInt(seqs.length)), spender })
    seqs.push(await seqOf(subjectId))
  }
  const left = async (...raws: (bigint | undefined)[]): Promise<bigint> => {
    const allowed = seqs.flatMap((seq, at) => {
      const raw = raws[at]
      return raw === undefined ? [] : [{ seq, raw }]
    })
    return available(await snapshotOf(owner, { balance: 200n, nonce: 9n, allowed }), assetOf(owner))
  }
  expect(await left(40n, 40n, 0n), 'the contract can take 40 once').toBe(160n)
  expect(await left(40n, 40n, 30n)).toBe(130n)
  expect(await left(90n, 90n, 0n), 'no more than all steps together').toBe(120n)
  expect(await left(undefined, undefined, 0n), 'no quorum').toBe(120n)
})

test('a step that ends without a transaction keeps its amount reserved if its contract has the allowance already', async () => {
  const owner = anAccount()
  const transactionId = await aTransaction(owner, 5n, 'final')
  const subjectId = await reserve(owner, { spender: '0xabc' })
  const seq = await seqOf(subjectId)
  await world.database.db.tx(async (tx) => {
    await keepAllowances(tx, [{ subjectId, transactionId }])
    await endReservations(tx, [{ subjectId, isBack: true }])
  })
  const left = async (nonce: bigint, raw: bigint): Promise<bigint> =>
    available(await snapshotOf(owner, { balance: 100n, nonce, allowed: [{ seq, raw }] }), assetOf(owner))
  expect(await left(5n, 0n), 'a block from before the approval').toBe(60n)
  expect([await left(6n, 40n), await left(6n, 0n)]).toEqual([60n, 100n])
})

test('an allowance that is gone still counts in balances of earlier blocks, and its reservation goes once no reader can use those', async () => {
  const { db } = world.database
  const owner = anAccount()
  const transactionId = await aTransaction(owner, 5n, 'final')
  const subjectId = await reserve(owner, { transactionId, spender: '0xabc' })
  const seq = await seqOf(subjectId)
  const left = async (block: bigint, allowed: readonly Allowed[]): Promise<bigint> =>
    available(await snapshotOf(owner, { balance: 100n, nonce: 6n, block, allowed }), assetOf(owner))
  await markAllowancesGone(db, [subjectId], { block: 12n })
  expect(await left(11n, [{ seq, raw: 40n }]), 'the contract may have taken it in block 12').toBe(60n)
  expect(await left(11n, []), 'no quorum').toBe(60n)
  expect(await left(12n, [{ seq, raw: 0n }])).toBe(100n)
  expect(await left(13n, [{ seq, raw: 40n }]), 'a later transfer approved it').toBe(100n)
  await markReservationsEnded(db, 'base-sepolia', 12n)
  const remaining = async (scanned: bigint): Promise<number> => {
    await db.run(sql`update deposit_cursors set scanned = ${scanned} where network = 'base-sepolia'`)
    await deleteEnded(db, { seconds: -1, most: 10 })
    return (await db.many(z.object({ seq: z.bigint() }), sql`select seq from reservations where seq = ${seq}`)).length
  }
  expect([await remaining(11n), await remaining(12n)]).toEqual([1, 0])
})

test('a reservation whose transfer has ended and has nothing to revoke goes, although an earlier process left its contract', async () => {
  const { db } = world.database
  const owner = anAccount()
  const subjectId = await reserve(owner, { transactionId: await aTransaction(owner, 5n, 'final'), spender: '0xabc' })
  await markReservationsEnded(db, 'base-sepolia', 12n)
  await db.run(sql`update deposit_cursors set scanned = 12 where network = 'base-sepolia'`)
  await deleteEnded(db, { seconds: -1, most: 10 })
  const left = sql`select seq from reservations where subject_id = ${subjectId}`
  expect(await db.many(z.object({ seq: z.bigint() }), left)).toEqual([])
})

test('an authorization counts until the block reports it as used', async () => {
  const owner = anAccount()
  const subjectId = await reserve(owner, { authorizationNonce: new Uint8Array(32).fill(7) })
  const { seq } = await world.database.db.one(
    z.object({ seq: z.bigint() }),
    sql`select seq from reservations where subject_id = ${subjectId}`,
  )
  expect(await available(await snapshotOf(owner, { balance: 100n, nonce: 99n }), assetOf(owner))).toBe(60n)
  expect(await available(await snapshotOf(owner, { balance: 60n, used: [seq] }), assetOf(owner))).toBe(60n)
  expect(await available(await snapshotOf(owner, { balance: 60n, used: [seq + 1n] }), assetOf(owner))).toBe(20n)
})

test('gas counts in the coin at the current fee until the transaction is signed, and then at the signed fee', async () => {
  const owner = anAccount()
  const transactionId = await aTransaction(owner, 0n)
  await reserve(owner, { asset: assetOf(owner, ether), rawAmount: 1n, gasLimit: 10n, transactionId })
  const snapshot = await snapshotOf(owner, { balance: 100n })
  expect(await available(snapshot, assetOf(owner, ether))).toBe(100n - 1n - 20n)
  await world.database.db.run(sql`
    insert into transaction_attempts (transaction_id, sequence, network, hash, raw, max_fee, priority_fee, created_at)
    values (${transactionId}, 1, 'base-sepolia', ${`0x${transactionId}`}, '', 5, 1, now())`)
  expect(await available(snapshot, assetOf(owner, ether))).toBe(100n - 1n - 50n)
})

function claim(snapshot: Snapshot, asset: WalletAsset, rawAmount: bigint): FundsClaim {
  return { snapshot, wants: [{ asset, rawAmount, gasLimit: 0n, dataBytes: 0 }] }
}

function covered(claims: readonly FundsClaim[]): Promise<readonly boolean[]> {
  return world.database.db.tx((tx) => areCovered(world.server.deps, tx, claims))
}

test('claims are covered in order, and a large uncovered claim takes nothing from a smaller one after it', async () => {
  const owner = anAccount()
  const [asset, snapshot] = [assetOf(owner), await snapshotOf(owner, { balance: 100n })]
  const claims = [70n, 1_000_000n, 30n, 1n].map((raw) => claim(snapshot, asset, raw))
  expect(await covered(claims)).toEqual([true, false, true, false])
})

test('claims by two snapshots of one wallet count each other', async () => {
  const owner = anAccount()
  const [older, newer] = [await snapshotOf(owner, { balance: 100n }), await snapshotOf(owner, { balance: 120n })]
  expect(await covered([claim(older, assetOf(owner), 90n), claim(newer, assetOf(owner), 31n)])).toEqual([true, false])
  expect(await covered([claim(older, assetOf(owner), 90n), claim(newer, assetOf(owner), 30n)])).toEqual([true, true])
})

test('a snapshot older than a minute covers nothing, since its reservations may have been deleted', async () => {
  const owner = anAccount()
  const stale = await snapshotOf(owner, { balance: 100n, ageMs: 61_000 })
  const fresh = await snapshotOf(owner, { balance: 100n, ageMs: 50_000 })
  expect(await covered([claim(stale, assetOf(owner), 1n), claim(fresh, assetOf(owner), 1n)])).toEqual([false, true])
})

test('reservations that can never be sent are released at the end, and sent ones stay until every reader has passed their block', async () => {
  const { db } = world.database
  const owner = anAccount()
  const subjectId = await reserve(owner, { transactionId: await aTransaction(owner, 0n, 'final') })
  await reserve(owner, { subjectId, part: 1, rawAmount: 7n })
  await reserve(owner, { subjectId, part: 2, rawAmount: 3n, authorizationNonce: new Uint8Array(32).fill(8) })
  const before = await snapshotOf(owner, { balance: 100n })
  expect(await available(before, assetOf(owner))).toBe(50n)
  await db.tx((tx) => endReservations(tx, [{ subjectId, isBack: false }]))
  expect(await available(before, assetOf(owner))).toBe(57n)
  await markReservationsEnded(db, 'base-sepolia', 2_000_000_000n)
  await deleteEnded(db, { seconds: -1, most: 10 })
  expect(await available(before, assetOf(owner)), 'the watcher is behind its block').toBe(57n)
  await db.run(sql`update deposit_cursors set scanned = 2000000000 where network = 'base-sepolia'`)
  await deleteEnded(db, { seconds: 600, most: 10 })
  expect(await available(before, assetOf(owner)), 'it has just ended').toBe(57n)
  await deleteEnded(db, { seconds: -1, most: 10 })
  expect(await available(before, assetOf(owner))).toBe(100n)
})

test('a signature that ended more than ten minutes ago is not read any more', async () => {
  const { db } = world.database
  const owner = anAccount()
  const subjectId = await reserve(owner, { authorizationNonce: new Uint8Array(32).fill(9) })
  await db.tx((tx) => endReservations(tx, [{ subjectId, isBack: false }]))
  await markReservationsEnded(db, 'base-sepolia', 12n)
  await db.run(sql`update deposit_cursors set scanned = 2000000000 where network = 'base-sepolia'`)
  const countAfter = async (minutes: number) => {
    await db.run(
      sql`update reservations set ended_at = now() - ${minutes} * interval '1 minute' where subject_id = ${subjectId}`,
    )
    await pruneReservations.run(world.server.deps as unknown as Parameters<typeof pruneReservations.run>[0])
    return (await readUnderWay(db, 'base-sepolia', [{ owner, asset: 'USDC' }])).authorizations.length
  }
  expect([await countAfter(9), await countAfter(11)]).toEqual([1, 0])
})

test('the block at which a reservation ended is that of a majority, not the head of one node', async () => {
  const { db } = world.database
  const subjectId = await reserve(anAccount(), { authorizationNonce: new Uint8Array(32).fill(10) })
  await db.tx((tx) => endReservations(tx, [{ subjectId, isBack: false }]))
  const chains = { on: () => chain, configured: [network] }
  const head = async () => ({ number: 1_000_000_000n })
  let newest: { readonly number: bigint } | undefined
  const chain = { head, blocks: { newestBlock: async () => newest } }
  const deps = { ...world.server.deps, chains } as unknown as Parameters<typeof pruneReservations.run>[0]
  const endedBlock = async () => {
    await pruneReservations.run(deps)
    const row = z.object({ endedBlock: z.bigint().nullable() })
    return db.one(row, sql`select ended_block from reservations where subject_id = ${subjectId}`)
  }
  expect(await endedBlock()).toEqual({ endedBlock: null })
  newest = { number: 40n }
  expect(await endedBlock()).toEqual({ endedBlock: 40n })
})
