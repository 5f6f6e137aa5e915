import { afterEach, beforeEach, expect, test } from 'vitest'
import { fail } from '../../src/chain/errors.ts'
import type { Tenant } from '../../src/platform/ctx.ts'
import { aFakeChain, aTx, type FakeChain } from './fake-chain.ts'
import { aFollowStage, begin, type FollowReads, type FollowStage, transfer } from './follow-stage.ts'

let stage: FollowStage
let chain: FakeChain

beforeEach(async () => {
  stage = await aFollowStage()
  chain = aFakeChain(stage.network, Math.floor(Date.now() / 1_000) - 600)
  chain.mineMany(40)
  await begin(stage, chain.node())
})
afterEach(() => stage.stop())

/** A wallet that gets this many deposits in the next block. Returns its id. */
async function aBusyWallet(tenant: Tenant, deposits: number): Promise<string> {
  const { id, address } = await stage.wallet({ tenant })
  chain.mine([aTx(...Array.from({ length: deposits }, (_, n) => transfer(stage.usdc, address, BigInt(n + 1))))])
  return id
}

/** The states of a wallet's rows. */
async function statusesAt(walletId: string): Promise<string[]> {
  return (await stage.rows()).filter((row) => row.walletId === walletId).map(({ status }) => status)
}

/** A pass confirms one page: a page takes long. */
function pageByPage(confirmTransfers?: (real: FollowReads) => FollowReads['confirmTransfers']) {
  const state = { nowMs: 0, pages: 0 }
  const wrap = (reads: FollowReads): FollowReads => ({
    ...reads,
    async confirmTransfers(claims) {
      if (claims.length === 0) return []
      state.pages += 1
      state.nowMs += 20_000
      return (confirmTransfers?.(reads) ?? reads.confirmTransfers)(claims)
    },
  })
  return { state, own: { wrap, nowMs: () => state.nowMs } }
}

test('the deposits of a busy organisation delay the confirmation of another one by one page', async () => {
  const [busy, quiet] = [await stage.anotherTenant(), await stage.anotherTenant()]
  const { state, own } = pageByPage()
  const follow = await stage.follower([chain.node()], own)
  const walletId = await aBusyWallet(busy, 700)
  const quietId = await aBusyWallet(quiet, 1)
  chain.mineMany(3)
  await follow()
  expect(await statusesAt(quietId)).toEqual(['confirmed'])
  expect((await statusesAt(walletId)).filter((status) => status === 'confirmed')).toHaveLength(99)
  const laterId = await aBusyWallet(quiet, 1)
  chain.mineMany(3)
  await follow()
  expect(await statusesAt(laterId)).toEqual(['confirmed'])
  expect(state.pages).toBe(2)
})

test('deposits about which the nodes stay undecided delay the confirmation of others by one page, and are confirmed once the nodes agree', async () => {
  const tenant = await stage.anotherTenant()
  let isDecided = false
  const { own } = pageByPage((real) => (claims) => {
    const isLarge = (claim: (typeof claims)[number]) => Number(claim.blockNumber) === doubtfulIn
    if (isDecided) return real.confirmTransfers(claims)
    return Promise.resolve(claims.map((claim) => (isLarge(claim) ? 'undecided' : 'yes')))
  })
  const follow = await stage.follower([chain.node()], own)
  const doubtfulId = await aBusyWallet(tenant, 300)
  const doubtfulIn = chain.height
  chain.mineMany(3)
  for (let pass = 0; pass < 5; pass += 1) await follow()
  expect(await statusesAt(doubtfulId)).toEqual(Array.from({ length: 300 }, () => 'pending'))
  // Of the same organisation, in a later block.
  const laterId = await aBusyWallet(tenant, 1)
  chain.mineMany(3)
  await follow()
  await follow()
  expect(await statusesAt(laterId)).toEqual(['confirmed'])
  isDecided = true
  for (let pass = 0; pass < 4; pass += 1) await follow()
  expect(await statusesAt(doubtfulId)).toEqual(Array.from({ length: 300 }, () => 'confirmed'))
})

test('a pass tries each deposit about which the nodes are undecided once', async () => {
  const counts = new Map<string, number>()
  const wrap = (reads: FollowReads): FollowReads => ({
    ...reads,
    async confirmTransfers(claims) {
      for (const { txHash } of claims) counts.set(txHash, (counts.get(txHash) ?? 0) + 1)
      return claims.map(() => 'undecided')
    },
  })
  const follow = await stage.follower([chain.node()], { wrap })
  await aBusyWallet(stage.tenant, 250)
  chain.mineMany(3)
  await follow()
  expect([...counts.values()]).toEqual([250])
  await follow()
  expect([...counts.values()]).toEqual([500])
})

test('a deposit whose confirmation the database refuses delays no other one', async () => {
  const { db } = stage.database
  const [badId, goodId] = [await aBusyWallet(stage.tenant, 1), await aBusyWallet(await stage.anotherTenant(), 3)]
  const refuse = (given: string) => db.run({ text: given, values: [] })
  await refuse(
    `alter table wallet_transactions add constraint refused check (wallet_id <> '${badId}' or status <> 'confirmed')`,
  )
  chain.mineMany(3)
  const follow = await stage.follower([chain.node()])
  await follow()
  expect(await statusesAt(goodId)).toEqual(['confirmed', 'confirmed', 'confirmed'])
  expect(await statusesAt(badId)).toEqual(['pending'])
  await refuse('alter table wallet_transactions drop constraint refused')
  await follow()
  expect(await statusesAt(badId)).toEqual(['confirmed'])
  expect(await stage.deposits()).toHaveLength(4)
})

test('votes on what was undecided begin with each organisation', async () => {
  const deep = await aFollowStage({ ...stage.network, depositFinality: { depth: 60 } })
  try {
    await begin(deep, chain.node())
    const busy = await deep.wallet({ prefix: 'mwt', tenant: await deep.anotherTenant() })
    const quiet = await deep.wallet({ prefix: 'mwt', tenant: await deep.anotherTenant() })
    const state = { nowMs: 0, isReadable: false }
    const votes: (readonly string[])[] = []
    const unreadable = { transfers: async () => Promise.reject(fail('chain-unavailable')) }
    const wrap = (reads: FollowReads): FollowReads => ({
      ...reads,
      eachNode: () => (state.isReadable ? reads.eachNode() : [unreadable, unreadable, unreadable]),
      areInvented: (claims) => {
        if (claims.length > 0) {
          state.nowMs += 20_000
          votes.push(claims.map(({ to }) => to.toLowerCase()))
        }
        return Promise.resolve(claims.map(() => 'undecided'))
      },
    })
    const nodes = [chain.node(), chain.node(), chain.node()]
    const follow = await deep.follower(nodes, { wrap, nowMs: () => state.nowMs })
    chain.mine([
      ...Array.from({ length: 350 }, () => aTx(transfer(deep.usdc, busy.address, 7n))),
      aTx(transfer(deep.usdc, quiet.address, 8n)),
    ])
    await follow()
    state.isReadable = true
    chain.mineMany(30)
    await follow()
    const [, second = []] = votes
    expect(votes).toHaveLength(2)
    expect(second).toHaveLength(100)
    expect(second.filter((to) => to === quiet.address.toLowerCase())).toHaveLength(1)
  } finally {
    await deep.stop()
  }
})
