import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '../../src/platform/db/db.ts'
import { newId } from '../../src/platform/ids.ts'
import { makeResources, type Resources } from '../resources.ts'
import { type Answer, aWorld, type Org, type World } from '../world.ts'

let world: World
let org: Org
let other: Org
let ids: Resources

beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation()
  other = await world.organisation()
  ids = await makeResources(world, org)
})
afterAll(() => world?.stop())

/** A copy of a sample with this metadata: it needs no chain, as a request for one would. */
interface Kind {
  readonly path: string
  readonly copy: (metadata: object, owner?: Org) => Promise<string>
  readonly status: string
  readonly otherStatus: string
}

const kinds: Readonly<Record<string, Kind>> = {
  transfers: {
    path: '/wallet-infra/transfers',
    status: 'pending',
    otherStatus: 'failed',
    copy: async (metadata, owner = org) => {
      const copyId = newId('wtx', world.server.deps)
      await world.database.db.run(sql`
        insert into transfers (id, organisation_id, environment, wallet_id, from_address, to_address, from_chain, from_network, to_chain, to_network,
          from_token, to_token, decimals, raw_amount, route, route_reason, status, created_at, metadata)
        select ${copyId}, ${owner.id}, environment, wallet_id, from_address, to_address, from_chain, from_network, to_chain, to_network, from_token,
          to_token, decimals, raw_amount, route, route_reason, status, now(), ${JSON.stringify(metadata)}::jsonb from transfers where id = ${ids.wtx}`)
      return copyId
    },
  },
  withdrawals: {
    path: '/wallet-infra/withdrawals',
    status: 'pending_conversion',
    otherStatus: 'completed',
    copy: async (metadata, owner = org) => {
      const copyId = newId('wdr', world.server.deps)
      await world.database.db.run(sql`
        insert into withdrawals (id, organisation_id, environment, wallet_id, from_address, chain, network, token, decimals, raw_amount,
          bank_account_id, currency, status, partner, partner_account_id, created_at, metadata)
        select ${copyId}, ${owner.id}, environment, wallet_id, from_address, chain, network, token, decimals, raw_amount, bank_account_id, currency,
          status, partner, partner_account_id, now(), ${JSON.stringify(metadata)}::jsonb from withdrawals where id = ${ids.wdr}`)
      return copyId
    },
  },
}

describe.each(Object.entries(kinds))('%s', (_name, { path, copy, status, otherStatus }) => {
  const get = (query: string, key = org.testKey): Promise<Answer> => world.call(key, 'GET', `${path}?${query}`)
  const found = async (query: string, key = org.testKey): Promise<unknown[]> => {
    const response = await get(query, key)
    expect(response.status, JSON.stringify(response.body)).toBe(200)
    return response.list.map(({ id }) => id)
  }

  test('are found by a text, a number or a boolean of their metadata, and by nothing inside an object', async () => {
    const id = await copy({ order: 7, text: 'seven', paid: true, none: null, within: { order: 8 }, list: [7] })
    for (const query of ['metadata.order=7', 'metadata.text=seven', 'metadata.paid=true', 'metadata[order]=7'])
      expect(await found(query), query).toEqual([id])
    for (const query of [
      'metadata.order=8',
      'metadata.order=',
      'metadata.Order=7',
      'metadata.text=Seven',
      'metadata.paid=false',
      'metadata.none=null',
      'metadata.within.order=8',
      'metadata.list=7',
      'metadata.absent=7',
    ])
      expect(await found(query), query).toEqual([])
  })

  test('are found by any key and value that metadata can have', async () => {
    const long = 'é'.repeat(255)
    const members: readonly (readonly [key: string, value: string])[] = [
      ['a.b', 'dotted'],
      ['[x]', '[y]'],
      ['it\'s "é" & = ?', '100 % & more'],
      ['_', '%'],
      ['k'.repeat(128), long],
      ['empty', ''],
    ]
    const id = await copy({ ...Object.fromEntries(members), longer: `${long}é` })
    for (const [key, value] of members)
      expect(await found(new URLSearchParams({ [`metadata.${key}`]: value }).toString()), key).toEqual([id])
    expect((await get(`metadata.longer=${encodeURIComponent(`${long}é`)}`)).status).toBe(422)
  })

  test('are paged and filtered further among those with the value', async () => {
    const made: string[] = []
    for (let at = 0; at < 5; at += 1) made.push(await copy({ batch: 'nightly', at }))
    const all = await found('metadata.batch=nightly')
    expect(all).toEqual(made.toSorted().reverse())
    const paged: unknown[] = []
    let next: string | undefined = `${path}?metadata.batch=nightly&limit=2`
    while (next !== undefined) {
      const page: Answer = await world.call(org.testKey, 'GET', next)
      paged.push(...page.list.map(({ id }) => id))
      next = /^<([^>]+)>/.exec(page.headers.get('link') ?? '')?.[1]
    }
    expect(paged).toEqual(all)
    expect(await found(`metadata.batch=nightly&status=${status}`)).toEqual(all)
    expect(await found(`metadata.batch=nightly&status=${otherStatus}`)).toEqual([])
    expect(await found('metadata.batch=nightly&from=2020-01-01&to=2999-01-01')).toEqual(all)
    expect(await found('metadata.batch=nightly&to=2020-01-01')).toEqual([])
  })

  test('of another tenant are never found', async () => {
    const [own, theirs] = [await copy({ shared: 'x' }), await copy({ shared: 'x' }, other)]
    expect([await found('metadata.shared=x'), await found('metadata.shared=x', other.testKey)]).toEqual([
      [own],
      [theirs],
    ])
    expect(await found('metadata.shared=x', org.liveKey)).toEqual([])
  })

  test.each([
    'metadata=x',
    'metadata.=x',
    'metadata.a=1&metadata.b=2',
    'metadata.a=1&metadata.a=2',
    `metadata.${'k'.repeat(129)}=x`,
    `metadata.k=${'v'.repeat(256)}`,
    'metadata.__proto__=x',
    'metadata.k=%00',
    'metadatum.k=x',
  ])('are not listed by %s: 422', async (query) => {
    const { status: refused, body } = await get(query)
    expect([refused, JSON.stringify(body.errors)]).toEqual([422, expect.stringContaining('metadat')])
  })
})

test('a list whose rows have no metadata refuses the filter', async () => {
  for (const path of ['/events', '/payments/logs', `/webhooks/${ids.wh}/attempts`]) {
    const { status, body } = await world.call(org.testKey, 'GET', `${path}?metadata.order=7`)
    expect([status, JSON.stringify(body.errors)]).toEqual([422, expect.stringContaining('metadata.order')])
  }
})
