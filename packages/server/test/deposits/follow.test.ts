import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { aFakeChain, aTx, type FakeChain } from './fake-chain.ts'
import { aFollowStage, anAddress, type FollowStage, transfer } from './follow-stage.ts'

let stage: FollowStage
let chain: FakeChain

beforeEach(async () => {
  stage = await aFollowStage()
  chain = aFakeChain(stage.network, Math.floor(Date.now() / 1_000) - 600)
  chain.mineMany(299)
})
afterEach(() => stage.stop())

test('a deposit is seen when its block is there, confirmed at its depth, and published once', async () => {
  const wallet = await stage.wallet()
  const follow = await stage.follower([chain.node()])
  await follow()
  const tx = aTx(transfer(stage.usdc, wallet.address, 1_500_000n))
  chain.mine([tx])
  await follow()
  const pending = await stage.rows()
  expect(pending).toMatchObject([{ walletId: wallet.id, direction: 'in', status: 'pending', rawAmount: '1500000' }])
  chain.mine()
  await follow()
  expect(await stage.deposits()).toEqual([])
  chain.mine()
  await follow()
  await follow()
  expect(await stage.rows()).toEqual([{ ...pending[0], status: 'confirmed' }])
  expect(await stage.deposits()).toEqual([{ walletId: wallet.id, rawAmount: '1500000', txHash: tx.hash, logIndex: 0 }])
})

test.each([1, 3])(
  'a block with more logs than any of %d nodes returns stops neither its own deposits nor those of later blocks',
  async (count) => {
    const [wallet, other] = [await stage.wallet(), await stage.wallet()]
    const long = chain.height + 1
    const refusal = (numbers: readonly number[]) =>
      numbers.includes(long) ? 'query returned more than 10000 results' : undefined
    const follow = await stage.follower(Array.from({ length: count }, () => chain.node({ refusal })))
    await follow()
    const own = aTx(transfer(stage.usdc, wallet.address, 1n), transfer(stage.usdc, anAddress(), 2n))
    chain.mine([aTx(transfer(stage.usdc, anAddress(), 3n)), own])
    chain.mine([aTx(transfer(stage.usdc, other.address, 4n))])
    chain.mineMany(40)
    let failures = 0
    for (let pass = 0; pass < 40; pass += 1) await follow().catch(() => (failures += 1))
    expect(failures).toBeLessThan(20)
    // Identifiers of one millisecond are in no order.
    const published = (await stage.deposits()).map(({ walletId, rawAmount }) => [walletId, rawAmount])
    expect(Object.fromEntries(published)).toEqual({ [wallet.id]: '1', [other.id]: '4' })
    expect(published).toHaveLength(2)
    const booked = (await stage.rows()).map(({ rawAmount, status, logIndex }) => `${rawAmount} ${status} ${logIndex}`)
    expect(booked.toSorted()).toEqual(['1 confirmed 1', '4 confirmed 0'])
  },
)

test.each([1, 3])(
  'a block is read by its accounts where none of %d nodes returns all of its logs and receipts, or those of a busy sender, and its deposits are confirmed',
  async (count) => {
    const wallets = await Promise.all(Array.from({ length: 3 }, () => stage.wallet()))
    const [wallet, sender, other] = wallets.map(({ address }) => address)
    if (wallet === undefined || sender === undefined || other === undefined) throw new Error('no wallets')
    const long = chain.height + 1
    const own = aTx(transfer(stage.usdc, wallet, 1n), transfer(stage.usdc, anAddress(), 2n), {
      ...transfer(stage.usdc, anAddress(), 3n),
      from: sender,
    })
    const isFiltered = ({ topics }: Record<string, unknown>) => Array.isArray(topics) && topics.length > 1
    const busy = `0x${own.transfers[0]?.from.slice(2).toLowerCase().padStart(64, '0')}`
    const isOfBusy = ({ topics }: Record<string, unknown>) => JSON.stringify(topics).toLowerCase().includes(busy)
    const refusal = (numbers: readonly number[], filter: Record<string, unknown>) =>
      numbers.includes(long) && (!isFiltered(filter) || isOfBusy(filter))
        ? 'query returned more than 10000 results'
        : undefined
    const node = () => chain.node({ refusal, isUnread: (txHash) => txHash === own.hash })
    const follow = await stage.follower(Array.from({ length: count }, node))
    await follow()
    chain.mine([aTx(transfer(stage.usdc, anAddress(), 4n)), own, aTx(transfer(stage.usdc, other, 5n))])
    chain.mine([aTx(transfer(stage.usdc, other, 6n))])
    chain.mineMany(40)
    for (let pass = 0; pass < 40; pass += 1) await follow().catch(() => undefined)
    const booked = (await stage.rows()).map(({ rawAmount, status, direction }) => `${rawAmount} ${direction} ${status}`)
    expect(booked.toSorted()).toEqual(['1 in confirmed', '3 out confirmed', '5 in confirmed', '6 in confirmed'])
  },
)

/** The head that a node of the deletion reports which is this many blocks behind. */
const headBehind = (of: FakeChain, blocks: number) => {
  const { number, timestamp } = z.object({ number: z.number(), timestamp: z.number() }).parse(of.blocks.at(-1 - blocks))
  return { network: stage.network, number: BigInt(number), timestampSeconds: BigInt(timestamp) }
}

test.each([20, 1])(
  'a deposit in the newest block is booked though the node of the deletion was %d or more blocks behind',
  async (blocks) => {
    const wallet = await stage.wallet()
    const follow = await stage.follower([chain.node()])
    await follow()
    chain.mine([aTx(transfer(stage.usdc, wallet.address, 1n))])
    const deletedAt = headBehind(chain, 0).timestampSeconds * 1_000n + 400n
    await wallet.unwatch(headBehind(chain, blocks), new Date(Number(deletedAt)))
    chain.mine([aTx(transfer(stage.usdc, wallet.address, 2n))])
    await follow()
    expect((await stage.rows()).map(({ rawAmount }) => rawAmount)).toEqual(['1'])
  },
)

test('where no node responds at the deletion, a deposit in the block before it is booked, and one in a later block is not', async () => {
  const wallet = await stage.wallet()
  const follow = await stage.follower([chain.node()])
  await follow()
  chain.mine([aTx(transfer(stage.usdc, wallet.address, 3n))])
  await wallet.unwatch(undefined, new Date(Number(headBehind(chain, 0).timestampSeconds) * 1_000))
  chain.mine([aTx(transfer(stage.usdc, wallet.address, 4n))])
  await follow()
  expect((await stage.rows()).map(({ rawAmount }) => rawAmount)).toEqual(['3'])
})

test('a pass that takes long confirms a page of deposits, and the next one takes a page of those about which the nodes were undecided', async () => {
  const wallet = await stage.wallet()
  let nowMs = 0
  const pages: number[] = []
  const follow = await stage.follower([chain.node()], {
    nowMs: () => nowMs,
    wrap: (reads) => ({
      ...reads,
      async confirmTransfers(claims) {
        if (claims.length === 0) return []
        pages.push(claims.length)
        nowMs += 20_000
        return pages.length === 1 ? claims.map(() => 'undecided') : reads.confirmTransfers(claims)
      },
    }),
  })
  await follow()
  chain.mine([aTx(...Array.from({ length: 250 }, () => transfer(stage.usdc, wallet.address, 1n)))])
  chain.mineMany(2)
  const countConfirmed = async () => (await stage.rows()).filter(({ status }) => status === 'confirmed').length
  const confirmed: number[] = []
  for (let pass = 0; pass < 4; pass += 1) {
    await follow()
    confirmed.push(await countConfirmed())
  }
  expect(pages).toEqual([100, 100, 100, 50])
  expect(confirmed).toEqual([0, 100, 200, 250])
})
