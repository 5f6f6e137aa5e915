import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { formOf, upload } from '../files/uploads.ts'
import { type Answer, aWorld, countByStatus, type Org, request, type World } from '../world.ts'

let world: World
let bases: readonly string[]

beforeAll(async () => {
  world = await aWorld()
  bases = [world.base, (await world.another({ role: 'api' })).base, (await world.another({ role: 'api' })).base]
})
afterAll(() => world?.stop())

type Send = (side: number) => Promise<Answer>

/** Sends the request nine times at once, three times to each process. */
function race(send: Send): Promise<Answer[]> {
  return Promise.all(Array.from({ length: 9 }, (_, side) => send(side)))
}

function poster(key: string, path: string, body: () => unknown): Send {
  return (side) => request(bases[side % bases.length] ?? '', { key, method: 'POST', path, body: body() })
}

async function usageOf(org: Org) {
  const { body } = await world.call(org.testKey, 'GET', '/billing/usage')
  const { plan: _, period: __, ...figures } = body
  return figures as Record<string, { used: number; limit: number }>
}

/** Whether the counters equal the numbers of rows. */
async function expectNoDrift(...orgs: readonly Org[]): Promise<void> {
  for (const org of orgs) {
    const before = await usageOf(org)
    expect((await world.call(org.testKey, 'POST', '/billing/rebuild-cache', {})).status).toBe(200)
    expect(await usageOf(org)).toEqual(before)
    for (const [kind, { used, limit }] of Object.entries(before)) expect([kind, used <= limit]).toEqual([kind, true])
  }
}

const byo = () => ({
  address: privateKeyToAddress(generatePrivateKey()),
  chain: 'base',
  supportedTokens: ['USDC'],
})
const master = () => ({ chain: 'base', supportedTokens: ['USDC'] })
const hook = () => ({ url: 'https://example.com/hook', events: ['*'] })

test('of nine requests at three processes for the last unit of a quota one succeeds', async () => {
  const org = await world.organisation('hobby')
  const key = org.testKey
  const first = (path: string, body: () => unknown) => race(poster(key, path, body))
  const walletPath = '/wallet-infra/master-wallets'
  const made: Record<string, Answer[]> = {
    byoWallets: await first('/wallet-infra/byo-wallets', byo),
    managedWallets: await first(walletPath, master),
    webhooks: await first('/webhooks', hook),
  }
  const walletId = made.managedWallets?.find(({ status }) => status === 201)?.body.id
  await world.call(key, 'POST', `${walletPath}/${walletId}/child-addresses`, { count: 999 })
  made.childAddresses = await first(`${walletPath}/${walletId}/child-addresses`, () => ({}))
  const vaults = [await world.call(key, 'POST', '/vaults', {}), await world.call(key, 'POST', '/vaults', {})]
  made.activeVaults = await first('/vaults', () => ({}))
  const vaultId = String(vaults[0]?.body.id)
  for (let n = 0; n < 49; n++) await world.call(key, 'POST', `/vaults/${vaultId}/documents`, { name: 'd', data: { n } })
  made.documentsPerVault = await first(`/vaults/${vaultId}/documents`, () => ({ name: 'd', data: {} }))
  const file = () => formOf({ filename: 'a.txt', content: 'content' })
  for (let n = 0; n < 4; n++) await upload(world.base, { key, vaultId, body: file() })
  made.filesPerVault = await race((side) => upload(bases[side % 3] ?? '', { key, vaultId, body: file() }))
  const active = made.activeVaults.find(({ status }) => status === 201)?.body.id
  made.persistedVaults = await Promise.all(
    [vaultId, String(vaults[1]?.body.id), String(active)].flatMap((id) =>
      bases.map((base) => request(base, { key, method: 'POST', path: `/vaults/${id}/persist`, body: {} })),
    ),
  )
  const { persistedVaults, ...others } = made
  for (const [kind, answers] of Object.entries(others)) {
    expect([kind, countByStatus(answers)[201], answers.filter(({ status }) => status >= 500)]).toEqual([kind, 1, []])
  }
  expect(new Set(persistedVaults?.filter(({ status }) => status === 200).map(({ body }) => body.id)).size).toBe(1)
  await expectNoDrift(org)
})

test('of nine payments for the last one of a month one is verified, with three processes', async () => {
  const org = await world.organisation('hobby')
  const wallet = await world.wallet(org)
  const price = { price: '0.01', walletId: wallet.id, resource: 'https://seller.example/paid' }
  const verify = poster(org.testKey, '/payments/verify', () => ({
    protocol: 'x402',
    credential: 'stub_payment_accepted',
    ...price,
  }))
  for (let n = 0; n < 99; n++) expect((await verify(n)).status).toBe(200)
  expect(countByStatus(await race(verify))).toEqual({ 200: 1, 429: 8 })
  await expectNoDrift(org)
})

test('organisations of one account make together as many vaults as the plan includes, at three processes at once', async () => {
  const org = await world.organisation('hobby')
  const second = await world.call(org.testKey, 'POST', '/organisations', { name: 'Second' })
  const keys = z.array(z.object({ key: z.string(), environment: z.string() })).parse(second.body.apiKeys)
  const other = { ...org, testKey: keys.find(({ environment }) => environment === 'test')?.key ?? '' }
  const vault = (side: number) => poster(side % 2 === 0 ? org.testKey : other.testKey, '/vaults', () => ({}))(side)
  const vaults = [...(await race(vault)), ...(await race(vault))]
  expect(countByStatus(vaults)).toEqual({ 201: 3, 429: 15 })
  await expectNoDrift(org, other)
})

test('what is made and deleted at three processes at once, also by requests that fail, leaves the counters exact', async () => {
  const org = await world.organisation('pro')
  const make = poster(org.testKey, '/webhooks', hook)
  const failing = poster(org.testKey, '/webhooks', () => ({ url: 'https://example.com/hook', events: ['no.such'] }))
  const vaultOf = poster(org.testKey, '/vaults', () => ({}))
  for (let round = 0; round < 3; round++) {
    const made = (await Promise.all([race(make), race(vaultOf), race(failing)]))
      .flat()
      .filter(({ status }) => status === 201)
    await Promise.all(
      made.flatMap(({ body: { id } }) =>
        bases.map((base) => {
          const path = String(id).startsWith('wh_') ? `/webhooks/${id}` : `/vaults/${id}`
          return request(base, { key: org.testKey, method: 'DELETE', path })
        }),
      ),
    )
    await expectNoDrift(org)
  }
  expect(await usageOf(org)).toMatchObject({ webhooks: { used: 0 }, activeVaults: { used: 0 } })
})

test('an organisation has at most fifty valid keys, whichever process makes them', async () => {
  const org = await world.organisation('hobby')
  const key = poster(org.testKey, '/organisations/current/api-keys', () => ({ name: 'k', environment: 'test' }))
  for (let n = 0; n < 48; n++) expect((await key(n)).status).toBe(201)
  expect(countByStatus(await race(key))[201]).toBe(1)
})
