import { afterEach, beforeEach, expect, test } from 'vitest'
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

test('a deposit from before the deletion is booked though the node of the deletion was far behind, and one from after it is not', async () => {
  const until = Math.floor(Date.now() / 1_000)
  const later = aFakeChain(stage.network, until - 700)
  later.mineMany(299)
  const wallet = await stage.wallet()
  const follow = await stage.follower([later.node()])
  await follow()
  const behind = BigInt(later.height) - 20n
  later.mine([aTx(transfer(stage.usdc, wallet.address, 1n))])
  await wallet.unwatch(behind)
  while ((later.blocks.at(-1)?.timestamp ?? 0) < until) later.mine()
  later.mine([aTx(transfer(stage.usdc, wallet.address, 2n))])
  await follow()
  expect((await stage.rows()).map(({ rawAmount }) => rawAmount)).toEqual(['1'])
})
