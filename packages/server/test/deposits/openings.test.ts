import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { holdReceived, readRecoveredOn } from '../../src/features/wallets/deposits/recovered.ts'
import { amountsOnHold } from '../../src/features/wallets/screening/deposit-store.ts'
import { sql } from '../../src/platform/db/db.ts'
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

type Balance = bigint | undefined

/** A quorum that returns these balances of USDC after the block `depth` below the head, and nothing of other tokens. */
function balancesAt(depth: number, balanceOf: (account: string) => Balance) {
  return async (questions: readonly object[]) => {
    const block = chain.blocks.at(-1 - depth)
    if (block === undefined) throw new Error('no such block')
    const values = questions.map((question) => {
      const { account, asset } = z.object({ account: z.string(), asset: z.string() }).parse(question)
      return asset === stage.usdc ? balanceOf(account.toLowerCase()) : 0n
    })
    const number = BigInt(block.number)
    return { block: { number, hash: block.hash, timestampSeconds: BigInt(block.timestamp) }, newest: number, values }
  }
}

async function unscreenedAt(walletId: string): Promise<bigint | undefined> {
  const question = { tenant: stage.tenant, walletId, network: stage.network.name, token: stage.usdc }
  const [amount] = await amountsOnHold(stage.database.db, [{ ...question, upTo: 1_000_000n }])
  return amount?.unscreened
}

async function cursor() {
  const [row] = await stage.database.db.many(
    z.object({ scanned: z.bigint().nullable(), tokens: z.array(z.string()).nullable() }),
    sql`select scanned, tokens from deposit_cursors`,
  )
  return row
}

test('the balance of a managed wallet from before is on hold, less what the first pass books, and nothing of a wallet of the customer', async () => {
  const [managed, own] = [await stage.wallet({ prefix: 'cad' }), await stage.wallet({ prefix: 'byw' })]
  chain.mine([aTx(transfer(stage.usdc, managed.address, 3n))])
  const follow = await stage.follower([chain.node()], { stateAt: balancesAt(0, () => 10n) })
  await follow()
  chain.mine([aTx(transfer(stage.usdc, managed.address, 4n))])
  await follow()
  expect(await stage.rows()).toHaveLength(2)
  expect([await unscreenedAt(managed.id), await unscreenedAt(own.id)]).toEqual([7n, 0n])
})

test('a process that dies while it reads the balances leaves a network that nobody follows, and the next begins at its own head', async () => {
  const wallets = await Promise.all([1, 2].map(() => stage.wallet({ prefix: 'mwt' })))
  const dying = await stage.follower([chain.node()], {
    stateAt: () => Promise.reject(new Error('the process died')),
  })
  await expect(dying()).rejects.toThrow('the process died')
  expect(await cursor()).toEqual({ scanned: null, tokens: [] })
  chain.mineMany(600)
  const follow = await stage.follower([chain.node()], { stateAt: balancesAt(2, () => 5n) })
  await follow()
  expect(await Promise.all(wallets.map(({ id }) => unscreenedAt(id)))).toEqual([5n, 5n])
  expect((await cursor())?.tokens).toEqual(stage.network.tokens.map(({ address }) => address))
})

test('a balance on which the nodes disagree delays the network; a token that no node has delays nothing and is not followed', async () => {
  const wallets = await Promise.all([1, 2].map(() => stage.wallet({ prefix: 'mwt' })))
  const disputed = wallets[0]?.address.toLowerCase()
  const disputing = await stage.follower([chain.node()], {
    stateAt: balancesAt(2, (account) => (account === disputed ? undefined : 5n)),
  })
  await expect(disputing()).rejects.toMatchObject({ code: 'chain-unavailable' })
  expect(await cursor()).toEqual({ scanned: null, tokens: [] })
  const without = await stage.follower([chain.node()], { stateAt: balancesAt(2, () => undefined) })
  await without()
  expect((await cursor())?.tokens).not.toContain(stage.usdc)
})

test('a token that the registry did not have before: its balances are on hold, and later blocks are read again for it', async () => {
  const wallet = await stage.wallet({ prefix: 'mwt' })
  const before = await stage.follower([chain.node()])
  await before()
  chain.mine([aTx(transfer(stage.usdc, wallet.address, 4n))])
  await before()
  // As the previous version leaves it, which does not know the token.
  const { db } = stage.database
  await db.run(sql`delete from wallet_transactions`)
  await db.run(sql`update deposit_cursors set tokens = array_remove(tokens, ${stage.usdc}), checked = scanned`)
  // Below the block of that transfer.
  const follow = await stage.follower([chain.node()], { stateAt: balancesAt(1, () => 5n) })
  await follow()
  expect(await unscreenedAt(wallet.id)).toBe(5n)
  chain.mineMany(30)
  await follow()
  expect(await stage.rows()).toMatchObject([{ walletId: wallet.id, rawAmount: '4' }])
  expect(await unscreenedAt(wallet.id)).toBe(5n)
})

test('a network that the previous version followed keeps its wallets’ money', async () => {
  const wallet = await stage.wallet({ prefix: 'mwt' })
  await (await stage.follower([chain.node()]))()
  await stage.database.db.run(sql`update deposit_cursors set tokens = null`)
  await (await stage.follower([chain.node()], { stateAt: balancesAt(2, () => 9n) }))()
  expect(await unscreenedAt(wallet.id)).toBe(0n)
  expect((await cursor())?.tokens).toContain(stage.usdc)
})

test('all that a recovered wallet holds is on hold until its balance is known after every block that was read without it', async () => {
  const follow = await stage.follower([chain.node()])
  await follow()
  const address = anAddress()
  chain.mine([aTx(transfer(stage.usdc, address, 5n))])
  await follow()
  const { id } = await stage.wallet({ prefix: 'cad', address })
  const { db } = stage.database
  await db.tx((tx) => holdReceived(tx, stage.tenant, id))
  const onHold = async () => ((await unscreenedAt(id)) ?? 0n) > 10n ** 30n
  const read = (depth: number) =>
    readRecoveredOn({ db }, stage.network, {
      // The deposit of 5 is in the newest of the blocks that were read before.
      stateAt: balancesAt(depth, () => (depth === 0 ? 5n : 0n)),
    })
  expect(await onHold()).toBe(true)
  await read(1)
  await read(1)
  expect(await onHold(), 'the balance is from before that block').toBe(true)
  await read(0)
  expect(await unscreenedAt(id)).toBe(5n)
  chain.mine([aTx(transfer(stage.usdc, address, 4n))])
  await follow()
  expect(await stage.rows()).toMatchObject([{ walletId: id, rawAmount: '4' }])
  expect(await unscreenedAt(id)).toBe(5n)
})
