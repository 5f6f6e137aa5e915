import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { amountsOnHold } from '../../src/features/wallets/screening/deposit-store.ts'
import { sql } from '../../src/platform/db/db.ts'
import { aFakeChain, aTx, type FakeChain, type FakeTx } from './fake-chain.ts'
import { aFollowStage, type FollowStage, transfer } from './follow-stage.ts'

let stage: FollowStage

beforeAll(async () => {
  stage = await aFollowStage()
})
afterAll(() => stage.stop())

const depth = 3
const now = (): number => Math.floor(Date.now() / 1_000)

/** A separate chain for each case, followed from its first block. */
async function aFollowedChain(): Promise<{ chain: FakeChain; follow: () => Promise<void> }> {
  for (const table of [sql`delete from scanned_blocks`, sql`delete from deposit_cursors`])
    await stage.database.db.run(table)
  for (const table of [sql`delete from wallet_transactions`, sql`delete from events`])
    await stage.database.db.run(table)
  const chain = aFakeChain(stage.network, now() - 600)
  chain.mineMany(25)
  const follow = await stage.follower([chain.node()])
  await follow()
  return { chain, follow }
}

/** Replaces the last blocks by as many others, with these transactions in the given block. */
function reorganize(
  chain: FakeChain,
  blocks: number,
  again: { readonly txs: readonly FakeTx[]; readonly at: number },
): void {
  chain.dropBlocks(blocks)
  for (let n = 0; n < blocks; n++) chain.mine(n === again.at ? again.txs : [])
}

/**
 * One that drops each age, and the one before it, which does not; and a deep one. What else lies between drops the same ages. The histories below have
 * forks of every depth up to 20.
 */
const depths = [1, 2, 3, 4, 10, 11, 20]

test.each(depths)(
  'a reorganization of %i blocks at any moment of a deposit’s life publishes it once, or never if it stays out',
  async (blocks) => {
    for (const age of [0, 1, depth - 1, depth, 10]) {
      const isTouched = age < blocks
      for (const fate of isTouched ? (['comes back', 'comes back later', 'never comes back'] as const) : ['stays']) {
        const wallet = await stage.wallet()
        const { chain, follow } = await aFollowedChain()
        const tx = aTx(transfer(stage.usdc, wallet.address))
        chain.mine([tx])
        for (let n = 0; n < age; n++) {
          await follow()
          chain.mine()
        }
        await follow()
        const wasReported = (await stage.deposits()).length
        expect(wasReported, `${age} blocks above it`).toBe(age >= depth - 1 ? 1 : 0)

        reorganize(chain, blocks, { txs: [tx], at: fate === 'comes back' ? Math.min(blocks - 1, 1) : -1 })
        await follow()
        if (fate === 'comes back later') chain.mine([tx])
        chain.mineMany(depth + 3)
        await follow()
        await follow()

        const isThere = fate !== 'never comes back'
        expect(
          (await stage.rows()).map(({ status }) => status),
          `${fate} at ${age}`,
        ).toEqual([isThere ? 'confirmed' : 'withdrawn'])
        expect(await stage.deposits(), `${fate} at ${age}`).toHaveLength(isThere ? 1 : wasReported)
      }
    }
  },
)

test('a transaction that comes back with its logs at other positions keeps its rows, among equal transfers too', async () => {
  const wallet = await stage.wallet()
  const { chain, follow } = await aFollowedChain()
  const [one, two] = [transfer(stage.usdc, wallet.address), transfer(stage.usdc, wallet.address)]
  const tx = aTx({ ...one, from: two.from }, two, transfer(stage.usdc, wallet.address, 7n))
  chain.mine([tx])
  await follow()
  const inOrder = async () => (await stage.rows()).sort((left, right) => left.logIndex - right.logIndex)
  const before = await inOrder()
  expect(before.map(({ logIndex }) => logIndex)).toEqual([0, 1, 2])
  chain.dropBlocks(1)
  chain.mine()
  chain.mine([aTx(transfer(stage.usdc, two.from)), tx])
  chain.mineMany(depth)
  await follow()
  await follow()
  const after = await inOrder()
  expect(after.map(({ id, logIndex, status }) => [id, logIndex, status])).toEqual(
    before.map(({ id, logIndex }) => [id, logIndex + 1, 'confirmed']),
  )
  expect(await stage.deposits()).toHaveLength(3)
})

test('a transaction with another effect when it comes back is another deposit, and the first stays withdrawn', async () => {
  const wallet = await stage.wallet()
  const { chain, follow } = await aFollowedChain()
  const tx = aTx(transfer(stage.usdc, wallet.address, 5n))
  chain.mine([tx])
  await follow()
  chain.dropBlocks(1)
  chain.mine([{ ...tx, transfers: [transfer(stage.usdc, wallet.address, 6n)] }])
  chain.mineMany(depth)
  await follow()
  await follow()
  expect((await stage.rows()).map(({ rawAmount, status }) => [rawAmount, status])).toEqual([
    ['5', 'withdrawn'],
    ['6', 'confirmed'],
  ])
  expect((await stage.deposits()).map(({ rawAmount }) => rawAmount)).toEqual(['6'])
})

test('a reorganization deeper than everything recorded is followed from there on', async () => {
  const wallet = await stage.wallet()
  const { chain, follow } = await aFollowedChain()
  chain.mineMany(400)
  await follow()
  chain.dropBlocks(380)
  chain.mineMany(390)
  chain.mine([aTx(transfer(stage.usdc, wallet.address))])
  chain.mineMany(depth)
  await follow()
  await follow()
  expect(await stage.deposits()).toHaveLength(1)
})

/** What may happen between two passes. */
const Step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('mine' as const), count: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('pay' as const), copies: fc.integer({ min: 1, max: 2 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('fork' as const),
      blocks: fc.integer({ min: 1, max: 20 }),
      extra: fc.integer({ min: 0, max: 2 }),
      /** For each transaction that the fork dropped: whether it comes back. */
      back: fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('look' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const) }) },
)

test('after any history of payments and reorganizations the rows match the chain, and nothing is published twice', async () => {
  const property = fc.asyncProperty(fc.array(Step, { minLength: 5, maxLength: 40, size: 'max' }), async (steps) => {
    const wallet = await stage.wallet()
    const { chain, follow: first } = await aFollowedChain()
    let follow = first
    const allEver = new Set<string>()
    for (const step of steps) {
      if (step.kind === 'mine') chain.mineMany(step.count)
      else if (step.kind === 'look') await follow()
      else if (step.kind === 'restart') follow = await stage.follower([chain.node()])
      else if (step.kind === 'pay') {
        const tx = aTx(...Array.from({ length: step.copies }, () => transfer(stage.usdc, wallet.address)))
        allEver.add(tx.hash)
        chain.mine([tx])
      } else {
        const dropped = chain.dropBlocks(Math.min(step.blocks, chain.height))
        const kept = dropped.filter((_, index) => step.back[index % step.back.length])
        for (let n = 0; n < step.blocks + step.extra; n++) chain.mine(n === 0 ? kept : [])
      }
    }
    chain.mineMany(depth + 1)
    await follow()
    await follow()
    const expected = chain.blocks.flatMap(({ txs }) => txs.flatMap((tx) => tx.transfers.map(() => tx.hash))).sort()
    const rows = await stage.rows()
    expect(
      rows
        .filter(({ status }) => status === 'confirmed')
        .map(({ txHash }) => txHash)
        .sort(),
    ).toEqual(expected)
    expect(rows.filter(({ status }) => status === 'pending')).toEqual([])
    const reported = (await stage.deposits()).map(({ txHash, logIndex }) => `${txHash}/${logIndex}`)
    const perHash = Map.groupBy(reported, (name) => name.slice(0, 66))
    for (const hash of expected) expect(perHash.has(hash)).toBe(true)
    for (const [hash, names] of perHash)
      expect(names.length, hash).toBe(rows.filter(({ txHash }) => txHash === hash).length)
  })
  await fc.assert(property, { numRuns: 40, endOnFailure: true })
})

test('while the watcher is at another fork than a block, the amounts on hold up to that block are not booked', async () => {
  const { chain, follow } = await aFollowedChain()
  const { id, address } = await stage.wallet({ prefix: 'mwt' })
  chain.mineMany(1)
  await follow()
  const upTo = BigInt(chain.height)
  reorganize(chain, 1, { txs: [aTx(transfer(stage.usdc, address))], at: 0 })
  chain.mineMany(2)
  const upToHash = chain.blocks[Number(upTo)]?.hash
  const place = { tenant: stage.tenant, walletId: id, network: stage.network.name, token: stage.usdc }
  const onHold = async () => (await amountsOnHold(stage.database.db, [{ ...place, upTo, upToHash }]))[0]
  expect(await onHold()).toMatchObject({ isBooked: false })
  await follow()
  await follow()
  expect(await onHold()).toMatchObject({ isBooked: true, notFinal: 0n })
  expect(await stage.rows()).toHaveLength(1)
  const above = { ...place, upTo: upTo + 100n, upToHash: undefined }
  expect((await amountsOnHold(stage.database.db, [above]))[0]).toMatchObject({ isBooked: false })
})
