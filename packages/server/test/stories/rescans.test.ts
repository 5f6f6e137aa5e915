import { multicall3Address, sendFromDevAccount } from '@purser/devnet'
import { encodeFunctionData, type Hex, multicall3Abi, parseAbi } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { aWorld, type Org, startChain, type World } from '../world.ts'

let chain: Awaited<ReturnType<typeof startChain>>
let world: World

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  // Without a watcher, which would change the rows.
  world = await aWorld({ chains: [chain], config: { role: 'api' } })
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const mintAbi = parseAbi(['function mint(address to, uint256 amount)'])

/** Sends one transaction with this many transfers to one address. */
function mintMany(address: Hex, transfers: number): Promise<Hex> {
  const target = chain.tokens.USDC
  if (target === undefined) throw new Error('the chain has no USDC')
  const callData = encodeFunctionData({ abi: mintAbi, functionName: 'mint', args: [address, 1n] })
  const calls = Array.from({ length: transfers }, () => ({ target, allowFailure: false, callData }))
  const data = encodeFunctionData({ abi: multicall3Abi, functionName: 'aggregate3', args: [calls] })
  return sendFromDevAccount(chain, multicall3Address, data)
}

/** Registers a wallet, to which this many transfers of one transaction went before. */
async function aLateWallet(org: Org, transfers: number): Promise<{ readonly id: string; readonly txHash: Hex }> {
  const { address } = privateKeyToAccount(generatePrivateKey())
  const txHash = await mintMany(address, transfers)
  const wallet = { address, chain: 'base-sepolia', supportedTokens: ['USDC'] }
  const made = await world.call(org.testKey, 'POST', '/wallet-infra/byo-wallets', wallet)
  expect(made.status).toBe(201)
  return { id: String(made.body.id), txHash }
}

const rescan = (org: Org, txHash: Hex) =>
  world.call(org.testKey, 'POST', '/wallet-infra/deposits/rescan', { chain: 'base', txHash })

const Count = z.object({ count: z.bigint() })

test('a rescan of a transaction with many transfers locks the network for a limited number of rows at a time, and finds all of them', async () => {
  const org = await world.organisation()
  const { id, txHash } = await aLateWallet(org, 600)
  const found = await rescan(org, txHash)
  expect(found.status).toBe(200)
  expect(z.object({ transactions: z.array(z.unknown()) }).parse(found.body).transactions).toHaveLength(500)
  const { db } = world.database
  // Nothing changes the rows of this world afterwards, so `xmin` is the transaction that booked a row.
  const booked = await db.many(
    Count,
    sql`select count(*) as count from wallet_transactions where wallet_id = ${id} group by xmin::text order by 1`,
  )
  expect(booked.map(({ count }) => count)).toEqual([100n, 250n, 250n])
  expect((await rescan(org, txHash)).status).toBe(200)
  const again = await db.one(Count, sql`select count(*) as count from wallet_transactions where wallet_id = ${id}`)
  expect(again.count).toBe(600n)
}, 60_000)

test('a rescan books a movement once, however often the address was registered and deleted, and after each registration', async () => {
  const org = await world.organisation()
  const { id, txHash } = await aLateWallet(org, 3)
  const { db } = world.database
  const again = async (walletId: string): Promise<string> => {
    const path = `/wallet-infra/byo-wallets/${walletId}`
    const { body } = await world.call(org.testKey, 'GET', path)
    expect((await world.call(org.testKey, 'DELETE', path)).status).toBe(204)
    const { address } = z.object({ address: z.string() }).parse(body)
    const wallet = { address, chain: 'base-sepolia', supportedTokens: ['USDC'] }
    const made = await world.call(org.testKey, 'POST', '/wallet-infra/byo-wallets', wallet)
    return String(made.body.id)
  }
  const third = await again(await again(id))
  const walletsOf = async () => {
    expect((await rescan(org, txHash)).status).toBe(200)
    const rows = await db.many(
      z.object({ walletId: z.string() }),
      sql`select wallet_id from wallet_transactions where organisation_id = ${org.id} and tx_hash = ${txHash}`,
    )
    return rows.map(({ walletId }) => walletId)
  }
  expect(await walletsOf()).toEqual([third, third, third])
  await again(third)
  expect(await walletsOf()).toEqual([third, third, third])
}, 60_000)

test('while a network is locked, a rescan of what is booked answers, and of all other rescans one waits at the network', async () => {
  const [busy, other, reader] = [await world.organisation(), await world.organisation(), await world.organisation()]
  const known = await aLateWallet(reader, 2)
  expect((await rescan(reader, known.txHash)).status).toBe(200)
  const late = [await aLateWallet(busy, 2), await aLateWallet(busy, 2), await aLateWallet(other, 2)]
  const { db } = world.database
  const { waiting, most } = await db.tx(async (tx) => {
    await tx.run(sql`select from deposit_cursors where network = 'base-sepolia' for update`)
    const rescans = [
      ...late.slice(0, 2).map(({ txHash }) => rescan(busy, txHash)),
      ...late.slice(2).map(({ txHash }) => rescan(other, txHash)),
    ]
    const sessions = async () => {
      const row = await db.one(
        Count,
        sql`select count(*) as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      return row.count
    }
    await expect.poll(sessions).toBe(1n)
    const answers = await Promise.all([rescan(reader, known.txHash), rescan(reader, known.txHash)])
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    return { waiting: rescans, most: await sessions() }
  })
  expect(most).toBe(1n)
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200, 200])
}, 60_000)
