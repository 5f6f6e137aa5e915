import { fundNative, fundToken, sendFromDevAccount } from '@purser/devnet'
import { encodeFunctionData, erc20Abi, getAddress } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { aReceiver, type Receiver } from '../webhooks/receiver.ts'
import { type Answer, aWorld, codeOf, type Org, startChain, type World } from '../world.ts'

let chain: Awaited<ReturnType<typeof startChain>>
let world: World
let org: Org

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain], boot: { depositPollMsMax: 50 } })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const node = async (method: string, params: readonly unknown[]): Promise<unknown> => {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  const response = await fetch(chain.rpcUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  return z.object({ result: z.unknown() }).parse(await response.json()).result
}

async function aHook(): Promise<Receiver> {
  const receiver = await aReceiver()
  await world.call(org.testKey, 'POST', '/webhooks', { url: receiver.url, events: ['deposit.success'] })
  return receiver
}

interface Managed {
  readonly id: string
  readonly address: `0x${string}`
}

async function aMaster(): Promise<Managed> {
  const body = { name: 'Treasury', chain: 'base', supportedTokens: ['USDC'] }
  const made = await world.call(org.testKey, 'POST', '/wallet-infra/master-wallets', body)
  expect(made.status).toBe(201)
  return { id: String(made.body.id), address: getAddress(String(made.body.address)) }
}

async function aChild(master: Managed): Promise<Managed> {
  const path = `/wallet-infra/master-wallets/${master.id}/child-addresses`
  const made = await world.call(org.testKey, 'POST', path, { name: 'Customer' })
  expect(made.status).toBe(201)
  return { id: String(made.body.id), address: getAddress(String(made.body.address)) }
}

const pathOf: Readonly<Record<string, (id: string, masterId?: string) => string>> = {
  byw: (id) => `/wallet-infra/byo-wallets/${id}/transactions`,
  mwt: (id) => `/wallet-infra/master-wallets/${id}/transactions`,
  cad: (id, masterId) => `/wallet-infra/master-wallets/${masterId}/child-addresses/${id}/transactions`,
}

function transactionsOf(id: string, masterId?: string, query = ''): Promise<Answer> {
  return world.call(org.testKey, 'GET', `${pathOf[id.slice(0, 3)]?.(id, masterId)}${query}`)
}

test('a deposit at a BYO wallet, a master and a child is published to the receiver, once each, with the fields of the API', async () => {
  const hook = await aHook()
  const [wallet, master] = [await world.wallet(org, { chain: 'base' }), await aMaster()]
  const child = await aChild(master)
  const hashes = new Map<string, string>()
  for (const { id, address } of [wallet, master, child])
    hashes.set(id, await fundToken(chain, 'USDC', address, 1_250_000n))
  await hook.until(3)
  for (const { id, address } of [wallet, master, child]) {
    const reported = hook.arrived.filter(({ payload }) => payload.walletId === id)
    expect(reported.map(({ type, payload }) => ({ type, payload }))).toEqual([
      {
        type: 'deposit.success',
        payload: {
          walletId: id,
          txHash: hashes.get(id),
          logIndex: expect.any(Number),
          amount: '1.25',
          rawAmount: '1250000',
          tokenSymbol: 'USDC',
          chain: 'base',
          from: expect.stringMatching(/^0x/),
          to: address,
          blockNumber: expect.any(Number),
          confirmedAt: expect.stringMatching(/Z$/),
        },
      },
    ])
    const [row] = (await transactionsOf(id, master.id)).list
    expect(row).toMatchObject({
      walletId: id,
      direction: 'in',
      kind: 'transfer',
      status: 'confirmed',
      amount: '1.25',
      chain: 'base',
    })
  }
  await hook.stop()
})

test('through reorganizations of 1 to 20 blocks a deposit is published once, and one that does not come back is withdrawn', async () => {
  const hook = await aHook()
  const kept = await world.wallet(org)
  for (const depth of [1, 2, 5, 20]) {
    await node('anvil_mine', ['0x16'])
    const reported = hook.arrived.length
    const lost = await world.wallet(org)
    const txHash = await fundToken(chain, 'USDC', lost.address, 5n)
    await expect
      .poll(async () => (await transactionsOf(lost.id)).list.map(({ status }) => status), { timeout: 60_000 })
      .toEqual(['confirmed'])
    await node('anvil_mine', [`0x${(depth - 1).toString(16)}`])
    await node('anvil_reorg', [depth, []])
    await node('anvil_mine', ['0x1'])
    await expect
      .poll(async () => (await transactionsOf(lost.id)).list.map(({ status }) => status), { timeout: 60_000 })
      .toEqual(['withdrawn'])
    await fundToken(chain, 'USDC', kept.address, BigInt(depth))
    await hook.until(reported + 2)
    expect(hook.arrived.filter(({ payload }) => payload.txHash === txHash)).toHaveLength(1)
  }
  expect((await transactionsOf(kept.id)).list.map(({ rawAmount, status }) => [rawAmount, status])).toEqual([
    ['20', 'confirmed'],
    ['5', 'confirmed'],
    ['2', 'confirmed'],
    ['1', 'confirmed'],
  ])
  expect(new Set(hook.ids()).size).toBe(hook.arrived.length)
  await hook.stop()
})

test('money on a chain or in a token outside of the wallet’s settings is a plain record without an event', async () => {
  const wallet = await world.wallet(org, { chain: 'ethereum' })
  await fundToken(chain, 'USDC', wallet.address, 9n)
  await expect
    .poll(async () => (await transactionsOf(wallet.id)).list.map(({ status }) => status), { timeout: 60_000 })
    .toEqual(['confirmed'])
  const [row] = (await transactionsOf(wallet.id)).list
  expect(row).toMatchObject({ kind: 'unsupported', chain: 'base-sepolia', rawAmount: '9' })
  expect((await transactionsOf(wallet.id, undefined, '?chain=ethereum')).list).toEqual([])
  expect((await transactionsOf(wallet.id, undefined, '?chain=base&token=USDC&direction=in')).list).toHaveLength(1)
  expect((await transactionsOf(wallet.id, undefined, '?direction=out')).list).toEqual([])
  const reported = await world.database.db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from events where payload->>'walletId' = ${wallet.id}`,
  )
  expect(reported.count).toBe(0n)
})

test('a deposit from before the wallet was registered is found by a rescan, once, and only by the wallet’s owner', async () => {
  const other = await world.organisation()
  const { address } = await world.wallet(other)
  const txHash = await fundToken(chain, 'USDC', address, 77n)
  await expect
    .poll(async () => (await world.call(other.testKey, 'GET', '/events?type=deposit.success')).list.length, {
      timeout: 60_000,
    })
    .toBe(1)
  const late = await world.call(org.testKey, 'POST', '/wallet-infra/byo-wallets', {
    address,
    chain: 'base',
    supportedTokens: ['USDC'],
  })
  const id = String(late.body.id)
  expect((await transactionsOf(id)).list).toEqual([])
  const rescan = (body: object, headers = {}) =>
    world.call(org.testKey, 'POST', '/wallet-infra/deposits/rescan', body, headers)
  const found = await rescan(
    { chain: 'base', txHash: txHash.toUpperCase().replace('0X', '0x') },
    { 'idempotency-key': 'r1' },
  )
  expect(found.status).toBe(200)
  expect(found.body).toMatchObject({ transactions: [{ walletId: id, rawAmount: '77', txHash }] })
  const again = await Promise.all([rescan({ chain: 'base', txHash }), rescan({ chain: 'base-sepolia', txHash })])
  expect(again.map(({ status }) => status)).toEqual([200, 200])
  await expect
    .poll(async () => (await transactionsOf(id)).list.map(({ status }) => status), { timeout: 60_000 })
    .toEqual(['confirmed'])
  const reported = (await world.call(org.testKey, 'GET', '/events?type=deposit.success&limit=500')).list
  expect(reported.filter(({ payload }) => Object(payload).walletId === id)).toHaveLength(1)
  expect((await world.call(other.testKey, 'GET', '/events?type=deposit.success')).list).toHaveLength(1)

  const nobody = await world.organisation()
  const refusals = [
    await world.call(nobody.testKey, 'POST', '/wallet-infra/deposits/rescan', { chain: 'base', txHash }),
    await rescan({ chain: 'base', txHash: `0x${'12'.repeat(32)}` }),
    await rescan({ chain: 'base', txHash: '0x12' }),
    await rescan({ chain: 'ethereum', txHash }),
    await world.call(org.liveKey, 'POST', '/wallet-infra/deposits/rescan', { chain: 'base-sepolia', txHash }),
  ]
  expect(refusals.map((response) => [response.status, codeOf(response)])).toEqual([
    [422, 'deposit-not-found'],
    [422, 'transaction-not-found'],
    [422, 'validation-error'],
    [503, 'chain-not-configured'],
    [422, 'chain-not-available'],
  ])
})

test('money that arrives right after its BYO wallet was deleted is not reported', async () => {
  const hook = await aHook()
  const [deleted, kept] = [await world.wallet(org), await world.wallet(org)]
  await fundToken(chain, 'USDC', deleted.address, 1n)
  const reported = () => hook.arrived.filter(({ payload }) => [deleted.id, kept.id].includes(String(payload.walletId)))
  await expect.poll(() => reported().length, { timeout: 60_000 }).toBe(1)
  // Local chains mine on demand: a head that looks old could be that of a node which is behind.
  await node('evm_setNextBlockTimestamp', [Math.floor(Date.now() / 1_000) + 10])
  await node('anvil_mine', [])
  expect((await world.call(org.testKey, 'DELETE', `/wallet-infra/byo-wallets/${deleted.id}`)).status).toBe(204)
  await fundToken(chain, 'USDC', deleted.address, 2n)
  await fundToken(chain, 'USDC', kept.address, 3n)
  await expect.poll(() => reported().at(-1)?.payload.rawAmount, { timeout: 60_000 }).toBe('3')
  expect(reported().map(({ payload }) => [payload.walletId, payload.rawAmount])).toEqual([
    [deleted.id, '1'],
    [kept.id, '3'],
  ])
  await hook.stop()
})

test('money from a master to a child is a deposit at the child, one from a child to a sibling too, and a sweep is none', async () => {
  const hook = await aHook()
  const master = await aMaster()
  const [child, sibling] = [await aChild(master), await aChild(master)]
  await fundNative(chain, master.address, 10n ** 18n)
  await fundToken(chain, 'USDC', master.address, 9_000_000n)
  const usual = { fromToken: 'USDC', toChain: 'base', toToken: 'USDC' }
  const send = (from: Managed, to: Managed, amount: string) =>
    world.call(org.testKey, 'POST', '/wallet-infra/transfer', {
      ...{ ...usual, fromWalletId: from.id, toAddress: to.address, amount },
    })
  const own = new Set<unknown>([master, child, sibling].map(({ id }) => id))
  const deposits = () =>
    hook.arrived
      .filter(({ payload }) => own.has(payload.walletId))
      .map(({ payload }) => [payload.walletId, payload.amount, payload.from])
  const until = (count: number) => expect.poll(() => deposits().length, { timeout: 60_000 }).toBe(count)
  await until(1)
  expect((await send(master, child, '2')).status).toBe(201)
  await until(2)
  await expect.poll(async () => (await send(child, sibling, '0.5')).status, { timeout: 60_000 }).toBe(201)
  await until(3)
  expect(deposits().slice(1)).toEqual([
    [child.id, '2', master.address],
    [sibling.id, '0.5', child.address],
  ])
  const swept = await world.call(org.testKey, 'POST', `/wallet-infra/master-wallets/${master.id}/sweep`, {
    token: 'USDC',
    childAddressIds: [sibling.id],
  })
  expect(swept.status).toBe(202)
  const statuses = async () => (await transactionsOf(master.id)).list.map(({ kind, status }) => [kind, status])
  await expect.poll(statuses, { timeout: 60_000 }).toContainEqual(['internal', 'confirmed'])
  await expect
    .poll(async () => (await transactionsOf(sibling.id, master.id)).list.map(({ status }) => status), {
      timeout: 60_000,
    })
    .toEqual(['confirmed', 'confirmed'])
  // The same movement by a transfer is a deposit.
  await expect.poll(async () => (await send(child, master, '1')).status, { timeout: 60_000 }).toBe(201)
  await until(4)
  expect(deposits()[3]).toEqual([master.id, '1', child.address])
  await hook.stop()
})

test('what leaves a wallet is booked as outgoing', async () => {
  const dev = getAddress('0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266')
  const made = await world.call(org.testKey, 'POST', '/wallet-infra/byo-wallets', {
    address: dev,
    chain: 'base',
    supportedTokens: ['USDC'],
  })
  await fundToken(chain, 'USDC', dev, 10n)
  const to = getAddress(`0x${'5a'.repeat(20)}`)
  const data = encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to, 4n] })
  await sendFromDevAccount(chain, chain.tokens.USDC ?? to, data)
  const id = String(made.body.id)
  await expect
    .poll(async () => (await transactionsOf(id)).list.map(({ direction, rawAmount }) => [direction, rawAmount]), {
      timeout: 60_000,
    })
    .toEqual([
      ['out', '4'],
      ['in', '10'],
    ])
})

test('one of two processes follows the network, and when it stops or loses the lead the other continues', async () => {
  const lead = () =>
    world.database.db.one(
      z.object({ leader: z.string(), epoch: z.bigint() }),
      sql`select leader, epoch from deposit_cursors where network = 'base-sepolia'`,
    )
  const second = await world.another()
  const before = await lead()
  const wallet = await world.wallet(org)
  await fundToken(chain, 'USDC', wallet.address, 1n)
  await expect.poll(async () => (await transactionsOf(wallet.id)).list.length, { timeout: 60_000 }).toBe(1)
  expect(await lead()).toEqual(before)
  // As if its host had frozen: another process has the row when it resumes.
  await world.database.db.run(
    sql`update deposit_cursors set epoch = epoch + 1, leader = 'nobody', lease_until = clock_timestamp() + interval '1 second'`,
  )
  await fundToken(chain, 'USDC', wallet.address, 2n)
  await expect.poll(async () => (await transactionsOf(wallet.id)).list.length, { timeout: 60_000 }).toBe(2)
  const after = await lead()
  expect(after.epoch).toBeGreaterThan(before.epoch + 1n)
  await second.server.stop()
  await fundToken(chain, 'USDC', wallet.address, 3n)
  await expect
    .poll(async () => (await transactionsOf(wallet.id)).list.map(({ rawAmount, status }) => [rawAmount, status]), {
      timeout: 60_000,
    })
    .toEqual([
      ['3', 'confirmed'],
      ['2', 'confirmed'],
      ['1', 'confirmed'],
    ])
  const reported = (await world.call(org.testKey, 'GET', '/events?type=deposit.success&limit=500')).list
  expect(reported.filter(({ payload }) => Object(payload).walletId === wallet.id)).toHaveLength(3)
})
