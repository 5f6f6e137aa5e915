import { hdChildAddress } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { type Answer, aWorld, codeOf, countByStatus, type Org, request, type World } from '../../../../test/world.ts'
import { createSignatures } from '../../../chain/signatures/signatures.ts'
import { sql } from '../../../platform/db/db.ts'
import { createDeriveAddress, deriveNext } from './children.ts'

let world: World

beforeAll(async () => {
  world = await aWorld()
})
afterAll(() => world.stop())

const masters = '/wallet-infra/master-wallets'

async function aMaster(org: Org): Promise<string> {
  const made = await world.call(org.testKey, 'POST', masters, { chain: 'base', supportedTokens: ['USDC'] })
  return `${masters}/${made.body.id}`
}

function derive(org: Org, master: string, body: Record<string, unknown> = {}): Promise<Answer> {
  return world.call(org.testKey, 'POST', `${master}/child-addresses`, body)
}

const ChildRow = z.object({ childIndex: z.bigint().transform(Number), address: z.string() })

function childrenOf(org: Org): Promise<z.output<typeof ChildRow>[]> {
  return world.database.db.many(
    ChildRow,
    sql`select child_index, address from child_addresses where organisation_id = ${org.id} order by child_index`,
  )
}

test('a child has the fields of the API, with its path below the master', async () => {
  const org = await world.organisation()
  const master = await aMaster(org)
  const made = await derive(org, master, { name: 'Customer 7', metadata: { customer: 7 } })
  expect(made.status).toBe(201)
  expect(made.body).toEqual({
    id: expect.stringMatching(/^cad_[0-9a-z]{26}$/),
    address: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
    derivationPath: "m/44'/60'/0'/0/1",
    masterWalletId: master.slice(masters.length + 1),
    name: 'Customer 7',
    metadata: { customer: 7 },
    createdAt: expect.stringMatching(/Z$/),
  })
  expect((await derive(org, master)).body).toMatchObject({
    derivationPath: "m/44'/60'/0'/0/2",
    name: null,
    metadata: {},
  })
  expect((await world.call(org.testKey, 'GET', `${master}/child-addresses/${made.body.id}`)).body).toEqual(made.body)
  const second = await aMaster(org)
  expect((await derive(org, second)).body.derivationPath).toBe("m/44'/60'/1'/0/1")
})

test('the list of managed wallets finds the wallet of a child address, for its own organisation alone', async () => {
  const [org, stranger] = [await world.organisation(), await world.organisation()]
  const [master] = [await aMaster(org), await aMaster(org), await aMaster(stranger)]
  const { body: child } = await derive(org, master)
  const listed = (key: string, query: string) => world.call(key, 'GET', `${masters}?${query}`)
  const found = await listed(org.testKey, `childAddressId=${child.id}`)
  expect(found.list).toEqual([expect.objectContaining({ id: child.masterWalletId })])
  expect((await listed(stranger.testKey, `childAddressId=${child.id}`)).list).toEqual([])
  expect((await listed(org.liveKey, `childAddressId=${child.id}`)).list).toEqual([])
  expect((await listed(org.testKey, `childAddressId=${child.masterWalletId}`)).status).toBe(422)
})

test('a child’s address is the one whose key custody signs with', async () => {
  const org = await world.organisation()
  const child = await derive(org, await aMaster(org))
  const { walletKeys } = world.server.deps
  const address = String(child.body.address) as `0x${string}`
  const signer = walletKeys.signer({ organisationId: org.id, environment: 'test' }, { account: 0, index: 1, address })
  const domain = { name: 'USDC', version: '2', chainId: 84532, verifyingContract: address }
  const authorization = { from: address, to: address, value: 1n, validAfter: 0n, validBefore: 1n } as const
  const signed = signer.signTransferWithAuthorization(domain, { ...authorization, nonce: `0x${'01'.repeat(32)}` })
  expect(await signed).toMatch(/^0x[0-9a-f]{130}$/)
})

test('a repeat of many children is made from their records, which are kept once', async () => {
  const org = await world.organisation()
  const master = await aMaster(org)
  const send = () =>
    world.call(org.testKey, 'POST', `${master}/child-addresses`, { count: 400 }, { 'idempotency-key': 'many' })
  const [first, again] = [await send(), await send()]
  expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([201, 'true'])
  expect(again.list).toEqual(first.list)
  const stored = sql`select coalesce(octet_length(sealed_body), 0) as bytes from idempotency_keys where key = 'many'`
  expect(await world.database.db.many(z.object({ bytes: z.int() }), stored)).toEqual([{ bytes: 0 }])
})

test('with count a thousand children come as an array by index, with one name and metadata, and one audit record', async () => {
  const org = await world.organisation()
  const master = await aMaster(org)
  const made = await derive(org, master, { count: 1_000, name: 'Lane', metadata: { batch: 1 } })
  expect([made.status, made.list.length]).toEqual([201, 1_000])
  expect(made.list.map((child) => child.derivationPath)).toEqual(
    Array.from({ length: 1_000 }, (_, n) => `m/44'/60'/0'/0/${n + 1}`),
  )
  expect(new Set(made.list.map((child) => child.address)).size).toBe(1_000)
  expect(made.list[999]).toMatchObject({ name: 'Lane', metadata: { batch: 1 } })
  const log = await world.call(org.testKey, 'GET', '/organisations/current/audit-log')
  expect(log.list.filter((record) => record.action === 'wallets.children.create')).toMatchObject([
    { target: master.slice(masters.length + 1), details: { count: 1_000, firstIndex: 1, lastIndex: 1_000 } },
  ])
  const watched = await world.database.db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from watched_addresses where organisation_id = ${org.id} and wallet_id like 'cad_%'`,
  )
  expect(watched.count).toBe(1_000n)
  expect((await derive(org, master, { count: 1 })).list).toMatchObject([{ derivationPath: "m/44'/60'/0'/0/1001" }])
})

test('four hundred children that a hundred callers request from two processes have indices 1 to 400 and as many addresses', async () => {
  const org = await world.organisation()
  const master = await aMaster(org)
  const second = await world.another()
  // A process under load refuses requests that wait too long; clients retry them.
  const ask = async (n: number): Promise<Answer> => {
    const base = n % 2 === 0 ? world.base : second.base
    const requested = { key: org.testKey, method: 'POST', path: `${master}/child-addresses`, body: {} }
    const answer = await request(base, requested)
    return answer.status === 503 ? ask(n) : answer
  }
  const callers = Array.from({ length: 100 }, async (_, caller) => {
    const own: Answer[] = []
    while (own.length < 4) own.push(await ask(caller))
    return own
  })
  const answers = (await Promise.all(callers)).flat()
  expect(countByStatus(answers)).toEqual({ 201: 400 })
  const rows = await childrenOf(org)
  expect(rows.map(({ childIndex }) => childIndex)).toEqual(Array.from({ length: 400 }, (_, n) => n + 1))
  expect(new Set(rows.map(({ address }) => address)).size).toBe(400)
  expect(new Set(answers.map(({ body }) => body.address)).size).toBe(400)
})

test('concurrent single and bulk requests leave no gap', async () => {
  const org = await world.organisation()
  const master = await aMaster(org)
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, n) => derive(org, master, n % 3 === 0 ? { count: 50 } : {})),
  )
  expect(countByStatus(answers)).toEqual({ 201: 30 })
  expect((await childrenOf(org)).map(({ childIndex }) => childIndex)).toEqual(
    Array.from({ length: 10 * 50 + 20 }, (_, n) => n + 1),
  )
})

test('no seed is opened for a child', async () => {
  const org = await world.organisation()
  const master = await aMaster(org)
  const spoilt = sql`update wallet_seeds set sealed = '\\x00' where organisation_id = ${org.id}`
  expect(await world.database.db.run(spoilt)).toBe(1)
  expect((await derive(org, master, { count: 3 })).status).toBe(201)
})

test('an index without a valid BIP-32 key is skipped, and the next one is used', async () => {
  const signatures = await createSignatures()
  const parent = {
    account: 0,
    chain: 'base' as const,
    network: 'base-sepolia',
    supportedTokens: ['USDC'],
    ...(await aNode()),
    nextChild: 4,
    retiredAt: null,
  }
  let sums = 0
  const curve = {
    ...signatures,
    addToPublicKey: (key: Uint8Array, tweak: Uint8Array) =>
      ++sums === 2 ? undefined : signatures.addToPublicKey(key, tweak),
  }
  const derived = deriveNext(createDeriveAddress(curve), parent, 3)
  expect(derived).toEqual([4, 6, 7].map((index) => ({ index, address: hdChildAddress(parent, index, signatures) })))
  const last = { ...parent, nextChild: 0x7fff_ffff }
  expect(deriveNext(createDeriveAddress(signatures), last, 1)).toHaveLength(1)
  expect(deriveNext(createDeriveAddress(signatures), last, 2)).toEqual([])
})

async function aNode() {
  const org = await world.organisation()
  const node = await world.server.deps.walletKeys.accountNode({ organisationId: org.id, environment: 'test' }, 0)
  return { publicKey: Uint8Array.from(node.publicKey), chainCode: Uint8Array.from(node.chainCode) }
}

test('a fault of the curve library is not an invalid child', async () => {
  const curve = {
    ...(await createSignatures()),
    addToPublicKey: () => {
      throw new Error('out of memory')
    },
  }
  const node = await aNode()
  expect(() => createDeriveAddress(curve)(node, 1)).toThrow('out of memory')
})

test('a wallet without remaining indices is reported as such', async () => {
  const org = await world.organisation()
  const master = await aMaster(org)
  await world.database.db.run(sql`update master_wallets set next_child = 2147483646 where organisation_id = ${org.id}`)
  expect((await derive(org, master, { count: 2 })).status).toBe(201)
  const refused = await derive(org, master)
  expect([refused.status, codeOf(refused)]).toEqual([409, 'child-addresses-exhausted'])
})

test.each([
  [{ count: 0 }, '/count'],
  [{ count: 1_001 }, '/count'],
  [{ count: 1.5 }, '/count'],
  [{ count: '5' }, '/count'],
  [{ count: 2, metadata: { note: 'x'.repeat(1_100) } }, '/metadata'],
  [{ metadata: { note: 'x'.repeat(17_000) } }, '/metadata'],
  [{ index: 5 }, '/index'],
])('a request with %j is 422 and names the invalid field', async (body, fault) => {
  const org = await world.organisation()
  const refused = await derive(org, await aMaster(org), body)
  expect([refused.status, codeOf(refused)]).toEqual([422, 'validation-error'])
  expect(refused.body.errors).toEqual(expect.arrayContaining([expect.objectContaining({ path: fault })]))
})

test('children of a master are listed newest first, one page at a time, without those of other masters', async () => {
  const org = await world.organisation()
  const [master, other] = [await aMaster(org), await aMaster(org)]
  await derive(org, master, { count: 5 })
  await derive(org, other, { count: 2 })
  const first = await world.call(org.testKey, 'GET', `${master}/child-addresses?limit=3`)
  const next = /^<([^>]+)>/.exec(first.headers.get('link') ?? '')?.[1]
  const second = await world.call(org.testKey, 'GET', String(next))
  expect([...first.list, ...second.list].map((child) => child.derivationPath)).toEqual(
    [5, 4, 3, 2, 1].map((index) => `m/44'/60'/0'/0/${index}`),
  )
  expect(second.headers.get('link')).toBeNull()
  const foreign = Buffer.from('cad_01h455vb4pex5vsknk084sn02q').toString('base64url')
  expect((await world.call(org.testKey, 'GET', `${master}/child-addresses?cursor=${foreign}`)).status).toBe(422)
  const strange = await world.call(org.testKey, 'GET', `${other}/child-addresses/${first.list[0]?.id}`)
  expect([strange.status, codeOf(strange)]).toEqual([404, 'child-address-not-found'])
})

test('an Idempotency-Key derives once', async () => {
  const org = await world.organisation()
  const master = await aMaster(org)
  const send = () =>
    world.call(org.testKey, 'POST', `${master}/child-addresses`, { count: 3 }, { 'idempotency-key': 'c1' })
  const [first, again] = [await send(), await send()]
  expect([first.status, again.status, again.headers.get('idempotency-replayed')]).toEqual([201, 201, 'true'])
  expect(again.list).toEqual(first.list)
  expect(await childrenOf(org)).toHaveLength(3)
})

test('a plan limits the child addresses of all wallets together; a batch that goes over it derives none', async () => {
  const org = await world.organisation('hobby')
  const master = await aMaster(org)
  await world.database.db.run(sql`
    insert into usage_counters (organisation_id, environment, kind, period, used) values (${org.id}, 'test', 'childAddresses', 'all', 997)`)
  const over = await derive(org, master, { count: 4 })
  expect([over.status, codeOf(over), over.body.limit, over.body.current]).toEqual([
    429,
    'child-address-limit-reached',
    1_000,
    997,
  ])
  expect(await childrenOf(org)).toEqual([])
  const answers = await Promise.all([1, 2, 3, 4, 5].map(() => derive(org, master)))
  expect(countByStatus(answers)).toEqual({ 201: 3, 429: 2 })
  expect((await childrenOf(org)).map(({ childIndex }) => childIndex)).toEqual([1, 2, 3])
  const { body } = await world.call(org.testKey, 'GET', '/account/usage')
  expect(body.childAddresses).toEqual({ used: 1_000, limit: 1_000, percent: 100, unlimited: false })
  await world.call(org.testKey, 'POST', '/billing/rebuild-cache')
  const rebuilt = await world.call(org.testKey, 'GET', '/account/usage')
  expect(rebuilt.body.childAddresses).toMatchObject({ used: 3 })
})
