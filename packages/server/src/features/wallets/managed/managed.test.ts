import { HDNodeWallet, Mnemonic } from 'ethers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import {
  type Answer,
  aWorld,
  codeOf,
  countByStatus,
  type Org,
  request,
  unreachableMain,
  type World,
} from '../../../../test/world.ts'
import type { AccountNode } from '../../../custody/index.ts'
import { sql } from '../../../platform/db/db.ts'
import { makeCtx } from '../../../platform/http/call.ts'
import { newId } from '../../../platform/ids.ts'
import { createMasterWallet } from './create.ts'

let world: World

beforeAll(async () => {
  world = await aWorld({ rpcUrls: unreachableMain })
})
afterAll(() => world.stop())

const path = '/wallet-infra/master-wallets'

function make(org: Org, changes: Record<string, unknown> = {}, key = org.testKey): Promise<Answer> {
  return world.call(key, 'POST', path, { chain: 'base', supportedTokens: ['USDC'], ...changes })
}

const AccountRow = z.object({ account: z.number(), address: z.string() })

function accountsOf(org: Org): Promise<z.output<typeof AccountRow>[]> {
  return world.database.db.many(
    AccountRow,
    sql`select account, address from master_wallets where organisation_id = ${org.id} order by account`,
  )
}

function ctxOf(org: Org) {
  const { deps } = world.server
  const tenant = { organisationId: org.id, environment: 'test' } as const
  const caller = { tenant, actor: { kind: 'operator' }, shareOwner: org.id } as const
  return makeCtx(deps, caller, newId('req', deps))
}

test('a managed wallet has the decided form, on the network that its chain means for the key', async () => {
  const org = await world.organisation()
  const made = await make(org, { name: 'Treasury' })
  expect(made.status).toBe(201)
  expect(made.body).toEqual({
    id: expect.stringMatching(/^mwt_[0-9a-z]{26}$/),
    address: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
    chain: 'base',
    chainId: 84532,
    network: 'eip155:84532',
    name: 'Treasury',
    provisionStatus: 'active',
    supportedTokens: ['USDC'],
    keyVersion: 1,
    autoSweep: null,
    metadata: {},
    retiredAt: null,
    createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  })
  expect((await world.call(org.testKey, 'GET', `${path}/${made.body.id}`)).body).toEqual(made.body)
  const live = await make(org, {}, org.liveKey)
  expect(live.body).toMatchObject({ chainId: 8453, network: 'eip155:8453', name: null })
  expect(live.body.address).not.toBe(made.body.address)
})

test('each environment of each organisation has its own seed and numbers its accounts from 0', async () => {
  const [org, other] = [await world.organisation(), await world.organisation()]
  const wallets = [
    await make(org),
    await make(org),
    await make(org, {}, org.liveKey),
    await make(other),
    await make(other, {}, other.liveKey),
  ]
  expect(new Set(wallets.map(({ body }) => body.address)).size).toBe(5)
  const accounts = [...(await accountsOf(org)), ...(await accountsOf(other))].map(({ account }) => account)
  expect(accounts).toEqual([0, 0, 1, 0, 0])
})

test.each([
  [{ chain: 'solana' }, '/chain'],
  [{ supportedTokens: [] }, '/supportedTokens'],
  [{ name: 'a\u0000' }, '/name'],
  [{ address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' }, '/address'],
])('a wallet with %j is 422 and names the invalid field', async (changes, fault) => {
  const org = await world.organisation()
  const refused = await make(org, changes)
  expect([refused.status, codeOf(refused)]).toEqual([422, 'validation-error'])
  expect(refused.body.errors).toEqual(expect.arrayContaining([expect.objectContaining({ path: fault })]))
})

test('a token that the chain does not have, and a live key’s test chain, are refused and use no account', async () => {
  const org = await world.organisation()
  expect(codeOf(await make(org, { supportedTokens: ['DOGE'] }))).toBe('token-not-supported')
  expect(codeOf(await make(org, { chain: 'base-sepolia' }, org.liveKey))).toBe('chain-not-available')
  expect(await accountsOf(org)).toEqual([])
  await make(org)
  expect((await accountsOf(org)).map(({ account }) => account)).toEqual([0])
})

test('twenty concurrent requests to two processes at a quota of five are five wallets, on accounts 0 to 4', async () => {
  const org = await world.organisation('pro')
  const second = await world.another()
  const body = { chain: 'base', supportedTokens: ['USDC'] }
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      request(n % 2 === 0 ? world.base : second.base, { key: org.testKey, method: 'POST', path, body }),
    ),
  )
  expect(countByStatus(answers)).toEqual({ 201: 5, 429: 15 })
  const accounts = await accountsOf(org)
  expect(accounts.map(({ account }) => account)).toEqual([0, 1, 2, 3, 4])
  expect(new Set(accounts.map(({ address }) => address)).size).toBe(5)
  const usage = () => world.call(org.testKey, 'GET', '/billing/usage')
  expect((await usage()).body.managedWallets).toMatchObject({ used: 5, limit: 5 })
  await world.call(org.testKey, 'POST', '/billing/rebuild-cache')
  expect((await usage()).body.managedWallets).toMatchObject({ used: 5, limit: 5 })
})

test('over the plan the response is the plan’s limit error', async () => {
  const org = await world.organisation('hobby')
  await make(org)
  const refused = await make(org)
  expect(refused.status).toBe(429)
  expect(refused.body).toEqual({
    type: 'http://purser.test/problems/managed-wallet-limit-reached',
    title: 'Plan Limit Reached',
    status: 429,
    detail: expect.any(String),
    limit: 1,
    current: 1,
    upgradeUrl: 'http://dashboard.test/settings/billing',
    requestId: refused.headers.get('x-request-id'),
  })
})

test('sixty concurrent requests to two processes use sixty accounts without a gap', async () => {
  const org = await world.organisation()
  const second = await world.another()
  const body = { chain: 'tempo', supportedTokens: ['pathUSD'] }
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, n) =>
      request(n % 2 === 0 ? world.base : second.base, { key: org.testKey, method: 'POST', path, body }),
    ),
  )
  expect(countByStatus(answers)).toEqual({ 201: 60 })
  expect((await accountsOf(org)).map(({ account }) => account)).toEqual(Array.from({ length: 60 }, (_, n) => n))
})

test('an account that another process takes between the read and the transaction stays with that process', async () => {
  const org = await world.organisation()
  const ctx = ctxOf(org)
  const requested: number[] = []
  const superseded = {
    ...ctx,
    walletKeys: {
      ...ctx.walletKeys,
      async accountNode(tenant: typeof ctx.tenant, account: number): Promise<AccountNode> {
        const node = await ctx.walletKeys.accountNode(tenant, account)
        if (requested.push(account) === 1) await make(org)
        return node
      },
    },
  }
  const wallet = await createMasterWallet(superseded, { chain: 'base', supportedTokens: ['USDC'] })
  expect(requested).toEqual([0, 1])
  expect((await accountsOf(org)).map(({ account }) => account)).toEqual([0, 1])
  expect((await accountsOf(org))[1]?.address).toBe(wallet.address)
})

test('a wallet whose keys are unavailable is not created, not counted, and leaves its account to the next', async () => {
  const org = await world.organisation('pro')
  const ctx = ctxOf(org)
  const failing = {
    ...ctx,
    walletKeys: { ...ctx.walletKeys, accountNode: () => Promise.reject(new Error('the key service is down')) },
  }
  await expect(createMasterWallet(failing, { chain: 'base', supportedTokens: ['USDC'] })).rejects.toThrow('key service')
  expect(await accountsOf(org)).toEqual([])
  await make(org)
  expect((await accountsOf(org)).map(({ account }) => account)).toEqual([0])
  expect((await world.call(org.testKey, 'GET', '/billing/usage')).body.managedWallets).toMatchObject({
    used: 1,
    limit: 5,
  })
})

test('an Idempotency-Key creates one wallet, even for two concurrent requests', async () => {
  const org = await world.organisation('pro')
  const body = { chain: 'base', supportedTokens: ['USDC'], name: 'Once' }
  const send = () => world.call(org.testKey, 'POST', path, body, { 'idempotency-key': 'm1' })
  const both = await Promise.all([send(), send()])
  expect([201, 409]).toContain(both[0].status)
  const again = await send()
  expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([201, 'true'])
  expect((await world.call(org.testKey, 'GET', path)).list).toEqual([again.body])
  const other = await world.call(org.testKey, 'POST', path, { ...body, name: 'x' }, { 'idempotency-key': 'm1' })
  expect(codeOf(other)).toBe('idempotency-key-reused')
})

test('a repeat whose first response was lost gets the wallet that was created', async () => {
  const org = await world.organisation('pro')
  const body = { chain: 'base', supportedTokens: ['USDC'] }
  const send = () => world.call(org.testKey, 'POST', path, body, { 'idempotency-key': 'lost' })
  const first = await send()
  const lost = sql`update idempotency_keys set state = 'running', status = null, sealed_body = null where key = 'lost'`
  expect(await world.database.db.run(lost)).toBe(1)
  const again = await send()
  expect([again.status, again.body]).toEqual([201, first.body])
})

test('wallets are listed newest first, one page at a time, and creating one is in the audit log', async () => {
  const org = await world.organisation()
  for (let n = 0; n < 3; n++) await make(org)
  const all = (await world.call(org.testKey, 'GET', path)).list.map((wallet) => wallet.id)
  expect(all).toEqual([...all].sort().reverse())
  const first = await world.call(org.testKey, 'GET', `${path}?limit=2`)
  const next = /^<([^>]+)>/.exec(first.headers.get('link') ?? '')?.[1]
  const second = await world.call(org.testKey, 'GET', String(next))
  expect([...first.list, ...second.list].map((wallet) => wallet.id)).toEqual(all)
  const log = await world.call(org.testKey, 'GET', '/organisations/current/audit-log')
  const made = log.list.filter((record) => record.action === 'wallets.master.create')
  expect(made.map((record) => record.target)).toEqual(all)
})

test('a new wallet’s address is watched from the commit that creates it', async () => {
  const org = await world.organisation()
  const { body } = await make(org)
  const rows = await world.database.db.many(
    z.object({ walletId: z.string(), address: z.string() }),
    sql`select wallet_id, '0x' || encode(address, 'hex') as address from watched_addresses where organisation_id = ${org.id}`,
  )
  expect(rows).toEqual([{ walletId: body.id, address: String(body.address).toLowerCase() }])
})

test('addresses come from a public node as another implementation derives them', async () => {
  const { deps } = world.server
  const node = HDNodeWallet.fromPhrase(Mnemonic.fromEntropy(new Uint8Array(16)).phrase, undefined, "m/44'/60'/7'/0")
  const derive = (index: number) =>
    deps.deriveAddress({ publicKey: bytes(node.publicKey), chainCode: bytes(node.chainCode) }, index)
  for (const index of [0, 1, 2_147_483_647]) expect(derive(index)).toBe(node.deriveChild(index).address)
})

function bytes(hex: string): Uint8Array {
  return Uint8Array.from(Buffer.from(hex.slice(2), 'hex'))
}
