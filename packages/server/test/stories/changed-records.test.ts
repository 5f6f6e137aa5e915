import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Answer, codeOf, type Org } from '../world.ts'
import { aVaultStage, type VaultStage } from './vaults-stage.ts'

let stage: VaultStage

beforeAll(async () => {
  stage = await aVaultStage()
})
afterAll(() => stage.world.stop())

const address = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
const order = { chain: 'base', supportedTokens: ['USDC'], metadata: { shop: 1, tags: ['a'] } }

async function made(org: Org, path: string, body: object): Promise<string> {
  const { status, body: record } = await stage.call(org, 'POST', path, body)
  expect([status, record.metadata]).toEqual([201, { shop: 1, tags: ['a'] }])
  return `${path}/${record.id}`
}

async function aMaster(org: Org): Promise<string> {
  return made(org, '/wallet-infra/master-wallets', { ...order, name: 'one' })
}

const records = {
  vault: {
    text: 'description',
    make: (org: Org) => made(org, '/vaults', { metadata: order.metadata, description: 'one' }),
    notFound: 'vault-not-found',
  },
  'BYO wallet': {
    text: 'name',
    make: (org: Org) => made(org, '/wallet-infra/byo-wallets', { ...order, name: 'one', address }),
    notFound: 'wallet-not-found',
  },
  'master wallet': { text: 'name', make: aMaster, notFound: 'wallet-not-found' },
  child: {
    text: 'name',
    make: async (org: Org) =>
      made(org, `${await aMaster(org)}/child-addresses`, { metadata: order.metadata, name: 'one' }),
    notFound: 'child-address-not-found',
  },
} as const

test.each(Object.entries(records))(
  'the text and metadata of a %s are changed separately, and returned by PATCH, GET and list alike',
  async (_, { text, make }) => {
    const org = await stage.world.organisation()
    const path = await make(org)
    const change = (body: object): Promise<Answer> => stage.call(org, 'PATCH', path, body)
    const seen = async () => {
      const { body } = await stage.call(org, 'GET', path)
      const [listed] = (await stage.call(org, 'GET', path.replace(/\/[^/]+$/, ''))).list
      expect([listed?.[text], listed?.metadata]).toEqual([body[text], body.metadata])
      return [body[text], body.metadata]
    }
    const renamed = await change({ [text]: 'two' })
    expect([renamed.status, renamed.body[text], renamed.body.metadata]).toEqual([200, 'two', order.metadata])
    expect(await seen()).toEqual(['two', order.metadata])
    expect((await change({ metadata: { deep: { none: null } } })).status).toBe(200)
    expect(await seen()).toEqual(['two', { deep: { none: null } }])
    expect((await change({})).status).toBe(200)
    expect((await change({ [text]: null, metadata: {} })).body).toMatchObject({ [text]: null, metadata: {} })
    expect(await seen()).toEqual([null, {}])
  },
)

test.each(Object.entries(records))(
  'an invalid change of a %s is refused, and another tenant’s is not found',
  async (_, { text, make, notFound }) => {
    const [org, other] = [await stage.world.organisation(), await stage.world.organisation()]
    const path = await make(org)
    for (const wrong of [
      { [text]: 7 },
      { [text]: 'x'.repeat(2_001) },
      { metadata: null },
      { metadata: [] },
      { metadata: { big: 'x'.repeat(20_000) } },
      { id: 'other' },
    ])
      expect((await stage.call(org, 'PATCH', path, wrong)).status).toBe(422)
    for (const key of [other.testKey, org.liveKey]) {
      const response = await stage.world.call(key, 'PATCH', path, { [text]: 'mine' })
      expect([response.status, codeOf(response)]).toEqual([404, notFound])
    }
    expect((await stage.call(org, 'GET', path)).body[text]).toBe('one')
  },
)

test('concurrent changes of one record are all applied', async () => {
  const org = await stage.world.organisation()
  const path = await records['BYO wallet'].make(org)
  const wishes = Array.from({ length: 20 }, (_, index) =>
    index % 2 === 0 ? { name: 'all' } : { metadata: { all: true } },
  )
  await Promise.all(wishes.map((wish) => stage.call(org, 'PATCH', path, wish)))
  expect((await stage.call(org, 'GET', path)).body).toMatchObject({ name: 'all', metadata: { all: true } })
})

test('a sealed vault cannot be changed, and a deleted wallet is not found', async () => {
  const org = await stage.world.organisation()
  const vault = await records.vault.make(org)
  await stage.call(org, 'POST', `${vault}/seal`, {})
  expect(codeOf(await stage.call(org, 'PATCH', vault, { description: 'two' }))).toBe('vault-sealed')
  const wallet = await records['BYO wallet'].make(org)
  await stage.call(org, 'DELETE', wallet)
  expect((await stage.call(org, 'PATCH', wallet, { name: 'two' })).status).toBe(404)
})
