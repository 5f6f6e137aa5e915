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
