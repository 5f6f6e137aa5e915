import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
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
} from '../../../test/world.ts'
import { sql } from '../../platform/db/db.ts'
import { EvmAddress } from '../../platform/wire.ts'

let world: World

beforeAll(async () => {
  world = await aWorld({ rpcUrls: unreachableMain, config: { sandboxScreening: false } })
})
afterAll(() => world.stop())

const path = '/wallet-infra/byo-wallets'
const checksummed = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'

function anAddress(): string {
  return privateKeyToAddress(generatePrivateKey())
}

function register(org: Org, changes: Record<string, unknown> = {}, key = org.testKey): Promise<Answer> {
  return world.call(key, 'POST', path, { address: anAddress(), chain: 'base', supportedTokens: ['USDC'], ...changes })
}

test('registering returns a record with the fields of the API, pending screening, under the chain name of the request', async () => {
  const org = await world.organisation()
  const address = anAddress()
  const made = await register(org, { address, name: 'Till', metadata: { shop: 7, tags: ['a'] } })
  expect(made.status).toBe(201)
  expect(made.body).toEqual({
    id: expect.stringMatching(/^byw_[0-9a-z]{26}$/),
    address,
    chain: 'base',
    name: 'Till',
    isActive: true,
    amlStatus: 'pending',
    supportedTokens: ['USDC'],
    metadata: { shop: 7, tags: ['a'] },
    createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  })
  expect((await world.call(org.testKey, 'GET', `${path}/${made.body.id}`)).body).toEqual(made.body)
  const row = await world.database.db.one(
    z.object({ network: z.string(), metadata: z.unknown() }),
    sql`select network, metadata from byo_wallets where id = ${made.body.id}`,
  )
  expect(row).toEqual({ network: 'base-sepolia', metadata: { shop: 7, tags: ['a'] } })
})

test('a wallet without a name has the name null', async () => {
  const org = await world.organisation()
  expect((await register(org)).body.name).toBeNull()
})

test.each([
  ['lower case', checksummed.toLowerCase()],
  ['upper case', `0x${checksummed.slice(2).toUpperCase()}`],
  ['a correct checksum', checksummed],
])('an address in %s is accepted and returned with its checksum', async (_case, address) => {
  const org = await world.organisation()
  expect((await register(org, { address })).body.address).toBe(checksummed)
})

test.each([
  ['a wrong checksum', checksummed.replace('5aA', '5Aa')],
  ['too few digits', checksummed.slice(0, -1)],
  ['too many digits', `${checksummed}0`],
  ['no 0x', checksummed.slice(2)],
  ['a letter that is no digit', checksummed.replace('5a', '5g')],
  ['the zero address', `0x${'0'.repeat(40)}`],
  ['nothing', ''],
])('an address with %s is 422 address-format-invalid', async (_fault, address) => {
  const org = await world.organisation()
  const refused = await register(org, { address })
  expect([refused.status, codeOf(refused)]).toEqual([422, 'address-format-invalid'])
  expect(refused.body.errors).toEqual([{ path: '/address', message: expect.any(String) }])
})

test.each([
  [{ chain: 'solana' }, '/chain'],
  [{ chain: 'polygon-amoy' }, '/chain'],
  [{ supportedTokens: [] }, '/supportedTokens'],
  [{ supportedTokens: 'USDC' }, '/supportedTokens'],
  [{ supportedTokens: ['USDC', 'USDC'] }, '/supportedTokens'],
  [{ supportedTokens: [null] }, '/supportedTokens/0'],
  [{ name: 5 }, '/name'],
  [{ name: 'a\u0000' }, '/name'],
  [{ metadata: 'x' }, '/metadata'],
  [{ isActive: true }, '/isActive'],
  [{ address: 5 }, '/address'],
])('a registration with %j is 422 and names the invalid field', async (changes, fault) => {
  const org = await world.organisation()
  const refused = await register(org, changes)
  expect([refused.status, codeOf(refused)]).toEqual([422, 'validation-error'])
  expect(refused.body.errors).toEqual(expect.arrayContaining([expect.objectContaining({ path: fault })]))
})

test('every fault of a registration is reported in one response', async () => {
  const org = await world.organisation()
  const refused = await world.call(org.testKey, 'POST', path, { address: 'x', chain: 'y', extra: 1 })
  expect(codeOf(refused)).toBe('validation-error')
  const paths = z.array(z.object({ path: z.string() })).parse(refused.body.errors)
  expect(paths.map((fault) => fault.path).sort()).toEqual(['/address', '/chain', '/extra', '/supportedTokens'])
})

test('a token that the chain does not have is 422 token-not-supported and is named', async () => {
  const org = await world.organisation()
  const refused = await register(org, { chain: 'base', supportedTokens: ['USDC', 'DOGE', 'usdc'] })
  expect([refused.status, codeOf(refused)]).toEqual([422, 'token-not-supported'])
  const faults = z.array(z.object({ path: z.string() })).parse(refused.body.errors)
  expect(faults.map((fault) => fault.path)).toEqual(['/supportedTokens/1', '/supportedTokens/2'])
})

test('a live key on a test chain is 422 chain-not-available, and on a mainnet chain it is that chain', async () => {
  const org = await world.organisation()
  for (const chain of ['base-sepolia', 'eth-sepolia', 'tempo-moderato']) {
    const refused = await register(org, { chain, supportedTokens: ['USDC'] }, org.liveKey)
    expect([refused.status, codeOf(refused)]).toEqual([422, 'chain-not-available'])
  }
  const made = await register(org, { chain: 'ethereum', supportedTokens: ['USDC', 'USDT'] }, org.liveKey)
  expect(made.status).toBe(201)
})

test('one address is registered once per resolved network, whatever its letter case and the chain’s name', async () => {
  const org = await world.organisation()
  const address = anAddress()
  const first = await register(org, { address, chain: 'base' })
  expect(first.status).toBe(201)
  for (const changes of [
    { address, chain: 'base' },
    { address: address.toLowerCase(), chain: 'base' },
    { address, chain: 'base-sepolia' },
  ]) {
    const refused = await register(org, changes)
    expect([refused.status, codeOf(refused)]).toEqual([409, 'wallet-already-registered'])
    expect(refused.body.detail).toBe(`The address is registered on this network already, as ${first.body.id}.`)
  }
  expect((await register(org, { address, chain: 'ethereum' })).status).toBe(201)
  expect((await register(org, { address }, org.liveKey)).status).toBe(201)
  expect((await register(await world.organisation(), { address })).status).toBe(201)
})

test('the same address twice in parallel is one 201 and one 409', async () => {
  const org = await world.organisation('pro')
  for (let round = 0; round < 5; round++) {
    const address = anAddress()
    const answers = await Promise.all([register(org, { address }), register(org, { address })])
    expect(countByStatus(answers)).toEqual({ 201: 1, 409: 1 })
  }
  expect((await world.call(org.testKey, 'GET', path)).list).toHaveLength(5)
})

test('the database itself refuses a second registration of an address', async () => {
  const org = await world.organisation()
  const { id } = (await register(org)).body
  const copy = sql`
    insert into byo_wallets select 'byw_copy', organisation_id, environment, address, 'base', network, name, supported_tokens, metadata,
      aml_status, created_at, null from byo_wallets where id = ${id}`
  await expect(world.database.db.run(copy)).rejects.toMatchObject({ constraint: 'byo_wallets_address' })
})

test('twenty parallel registrations at a quota of five are exactly five wallets', async () => {
  const org = await world.organisation('pro')
  const second = await world.another()
  const headers = { authorization: `Bearer ${org.testKey}`, 'content-type': 'application/json' }
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => {
      const body = JSON.stringify({ address: anAddress(), chain: 'base', supportedTokens: ['USDC'] })
      return fetch((n % 2 === 0 ? world.base : second.base) + path, { method: 'POST', headers, body })
    }),
  )
  expect(countByStatus(answers)).toEqual({ 201: 5, 429: 15 })
  expect((await world.call(org.testKey, 'GET', path)).list).toHaveLength(5)
  const usage = await world.call(org.testKey, 'GET', '/billing/usage')
  expect(usage.body.byoWallets).toMatchObject({ used: 5, limit: 5 })
})

test('over the plan the response is the plan’s limit error, and deleting a wallet frees its quota', async () => {
  const org = await world.organisation('hobby')
  const first = await register(org)
  const refused = await register(org)
  expect(refused.status).toBe(429)
  expect(refused.headers.get('content-type')).toContain('application/problem+json')
  expect(refused.body).toEqual({
    type: 'http://purser.test/problems/byo-wallet-limit-reached',
    title: 'Plan Limit Reached',
    status: 429,
    detail: expect.any(String),
    limit: 1,
    current: 1,
    upgradeUrl: 'http://dashboard.test/settings/billing',
    requestId: refused.headers.get('x-request-id'),
  })
  const same = await register(org, { address: first.body.address })
  expect(same.status).toBe(409)
  expect((await world.call(org.testKey, 'DELETE', `${path}/${first.body.id}`)).status).toBe(204)
  expect((await register(org, { address: first.body.address })).status).toBe(201)
})

test('a deleted wallet is gone: 404 to GET and to a second DELETE, in no list, and counted once', async () => {
  const org = await world.organisation('pro')
  const { id } = (await register(org)).body
  const deletions = await Promise.all([1, 2, 3].map(() => world.call(org.testKey, 'DELETE', `${path}/${id}`)))
  expect(countByStatus(deletions)).toEqual({ 204: 1, 404: 2 })
  const missing = await world.call(org.testKey, 'GET', `${path}/${id}`)
  expect([missing.status, codeOf(missing)]).toEqual([404, 'wallet-not-found'])
  expect((await world.call(org.testKey, 'GET', path)).list).toEqual([])
  expect((await world.call(org.testKey, 'GET', '/billing/usage')).body.byoWallets).toMatchObject({ used: 0, limit: 5 })
})

test('another organisation’s or environment’s wallet gets the response of one that never existed', async () => {
  const [org, other] = [await world.organisation(), await world.organisation()]
  const { id } = (await register(org)).body
  const shownOf = ({ status, body: { requestId: _, ...record } }: Answer) => ({ status, record })
  for (const method of ['GET', 'DELETE']) {
    const never = shownOf(await world.call(org.testKey, method, `${path}/byw_01h455vb4pex5vsknk084sn02q`))
    expect(never.status).toBe(404)
    expect(shownOf(await world.call(other.testKey, method, `${path}/${id}`))).toEqual(never)
    expect(shownOf(await world.call(org.liveKey, method, `${path}/${id}`))).toEqual(never)
    expect(shownOf(await world.call(org.testKey, method, `${path}/mwt_01h455vb4pex5vsknk084sn02q`))).toEqual(never)
  }
  expect((await world.call(other.testKey, 'GET', path)).list).toEqual([])
  expect((await world.call(org.liveKey, 'GET', path)).list).toEqual([])
  expect((await world.call(org.testKey, 'GET', `${path}/${id}`)).status).toBe(200)
})

test('wallets are listed newest first, a page at a time', async () => {
  const org = await world.organisation()
  for (let n = 0; n < 3; n++) await register(org)
  const all = (await world.call(org.testKey, 'GET', path)).list.map((wallet) => wallet.id)
  expect(all).toEqual([...all].sort().reverse())
  const first = await world.call(org.testKey, 'GET', `${path}?limit=2`)
  const next = /^<([^>]+)>/.exec(first.headers.get('link') ?? '')?.[1]
  const second = await world.call(org.testKey, 'GET', String(next))
  expect([...first.list, ...second.list].map((wallet) => wallet.id)).toEqual(all)
  expect(second.headers.get('link')).toBeNull()
  for (const query of ['limit=0', 'limit=501', 'limit=x', 'cursor=x', 'sort=up']) {
    expect((await world.call(org.testKey, 'GET', `${path}?${query}`)).status).toBe(422)
  }
})

test('an Idempotency-Key creates one wallet, which counts once against the plan', async () => {
  const org = await world.organisation('pro')
  const body = { address: anAddress(), chain: 'base', supportedTokens: ['USDC'] }
  const send = () => world.call(org.testKey, 'POST', path, body, { 'idempotency-key': 'w1' })
  const first = await send()
  const again = await send()
  expect([first.status, again.status, again.headers.get('idempotency-replayed')]).toEqual([201, 201, 'true'])
  expect(again.body).toEqual(first.body)
  expect((await world.call(org.testKey, 'GET', '/billing/usage')).body.byoWallets).toMatchObject({ used: 1, limit: 5 })
})

test.each(['/wallet-infra/byo-wallets', '/wallet-infra/master-wallets'])(
  '%s refuses a live wallet on a network without a node, and creates one for stubs in the test environment',
  async (path) => {
    const org = await world.organisation()
    const own = path.includes('byo') ? { address: privateKeyToAddress(generatePrivateKey()) } : {}
    const body = { chain: 'polygon', supportedTokens: ['USDC'], ...own }
    const live = await world.call(org.liveKey, 'POST', path, body)
    expect([live.status, codeOf(live), live.headers.get('retry-after')]).toEqual([503, 'chain-not-configured', '1'])
    expect((await world.call(org.liveKey, 'GET', path)).list).toEqual([])
    expect((await world.call(org.testKey, 'POST', path, body)).status).toBe(201)
    const another = await world.another({ rpcUrls: { polygon: ['http://127.0.0.1:1'] } })
    const made = await request(another.base, { key: org.liveKey, method: 'POST', path, body })
    expect(made.status).toBe(201)
    await another.server.stop()
  },
)

test.each([
  ['the token of the network', '0x036CbD53842c5426634e7929541eC2318f3dCF7e'],
  ['a token of another network', '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'],
  ['Multicall3', '0xcA11bde05977b3631167028862bE2a173976CA11'],
  ['Permit2', '0x000000000022D473030F116dDEE9F6B43aC78BA3'],
  ['the x402 proxy of exact', '0x402085c248EeA27D92E8b30b2C58ed07f9E20001'],
  ['the x402 proxy of upto', '0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002'],
  ['a precompile', '0x0000000000000000000000000000000000000004'],
  ['the burn address', '0x000000000000000000000000000000000000dEaD'],
  ['a predeploy of the OP Stack', '0x4200000000000000000000000000000000000006'],
  ['any token of Tempo', '0x20c0000000000000000000009e8d7eb59b783726'],
  ['Tempo’s fee manager', '0xfeec000000000000000000000000000000000000'],
  ['Circle’s messenger on test networks', '0x8FE6B999Dc680CcFDD5Bf7EB0974218be2542DAA'],
  ['Circle’s messenger on main networks', '0x28b5a0e9C621a5BadaA536219b3a228C8168cf5d'],
  ['the settler', ''],
])('%s cannot be registered as a wallet', async (_, address) => {
  const org = await world.organisation()
  const refused = await register(org, { address: address || world.server.settlerAddress })
  expect([refused.status, codeOf(refused)]).toEqual([422, 'validation-error'])
  expect(refused.body.errors).toEqual([
    { path: '/address', message: expect.stringContaining('money sent there is lost') },
  ])
  expect((await world.call(org.testKey, 'GET', path)).list).toEqual([])
})

test('the example address of the reference can be registered', async () => {
  const org = await world.organisation()
  const { example } = EvmAddress.meta() ?? {}
  expect((await register(org, { address: example })).status).toBe(201)
})
