import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { aFakeChain, aTx, type FakeChain } from './fake-chain.ts'
import { aFollowStage, type FollowStage, transfer } from './follow-stage.ts'

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
