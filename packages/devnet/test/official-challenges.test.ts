import { Challenge } from 'mppx'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { aWorld, type World } from '../../server/test/world.ts'
import { shops } from './paid-shops.ts'

const callers = 50

let world: World

beforeAll(async () => {
  // The clock does not move, so a difference between two challenges does not come from it.
  const standing = new Date()
  world = await aWorld({ boot: { clock: { now: () => new Date(standing) } } })
})
afterAll(() => world?.stop())

const frameworks = Object.entries(shops)

describe.each(frameworks)('behind our %s middleware', (_name, openShop) => {
  test.each([
    ['requested one by one', 1],
    ['fetched ahead', 20],
  ])('callers in the same millisecond get separate challenges, %s', async (_how, challengeBatch) => {
    const org = await world.organisation()
    const wallet = await world.wallet(org)
    const shop = await openShop({ apiKey: org.testKey, baseUrl: world.base, walletId: wallet.id, challengeBatch })
    try {
      const requested = await Promise.all(Array.from({ length: callers }, () => fetch(`${shop.url}/report`)))
      const offers = requested.flatMap((response) => Challenge.fromResponseList(response))

      expect(offers).toHaveLength(callers)
      expect(new Set(offers.map(({ id }) => id)).size).toBe(callers)
      expect(new Set(offers.map(({ opaque }) => JSON.stringify(opaque))).size).toBe(callers)
      expect(new Set(offers.map(({ expires }) => expires)).size).toBe(1)
    } finally {
      await shop.stop()
    }
  })
})
