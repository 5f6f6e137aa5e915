import { expect, test } from 'vitest'
import { id } from '../../../platform/ids.ts'
import { chooseByShares, openSlots } from './slots.ts'

const digits = (number: number) => String(number).padStart(26, '0')
const orgOf = (at: number) => id('org').parse(`org_${digits(at)}`)
const queuesOf = (at: number, count: number) =>
  Array.from({ length: count }, (_, n) => ({
    webhookId: id('wh').parse(`wh_${digits(at * 10_000 + n)}`),
    organisationId: orgOf(at),
  }))

test('the first half of the slots is filled without regard to the organisations', () => {
  expect([0, 400, 500, 700].map((taken) => openSlots(taken, 1_000))).toEqual([500, 100, 0, 0])
})

test('an organisation with half of the slots gets no more, and one without any gets one', () => {
  const leased = queuesOf(0, 500)
  const { chosen, refused } = chooseByShares([...queuesOf(0, 10), ...queuesOf(1, 1)], { leased, max: 1_000 })
  expect([chosen, refused]).toEqual([queuesOf(1, 1), new Map([[orgOf(0), 10]])])
})

test('slots that several organisations want leave an eighth for those that have none', () => {
  const waiting = Array.from({ length: 20 }, (_, at) => queuesOf(at, 1_000)).flat()
  const { chosen } = chooseByShares(waiting, { leased: [], max: 1_000 })
  const own = Array.from(
    { length: 20 },
    (_, at) => chosen.filter(({ organisationId }) => organisationId === orgOf(at)).length,
  )
  expect(Math.min(...own)).toBeGreaterThan(0)
  expect(own[0]).toBeLessThan(500)
  const later = chooseByShares(queuesOf(30, 1_000), { leased: chosen, max: 1_000 })
  expect(later.chosen.length).toBeGreaterThan(0)
  expect(chosen.length).toBeLessThan(900)
})

test('ten organisations that took all slots leave another one as many as each of them has, when their turns end', () => {
  const countsOf = (queues: readonly { readonly organisationId: string }[]) => {
    const counts = Map.groupBy(queues, ({ organisationId }) => organisationId)
    return Array.from({ length: 11 }, (_, at) => counts.get(orgOf(at))?.length ?? 0)
  }
  const first = queuesOf(0, 500)
  const others = Array.from({ length: 9 }, (_, at) => queuesOf(at + 1, 500)).flat()
  let leased = [...first, ...chooseByShares(others, { leased: first, max: 1_000 }).chosen]
  leased = [...leased, ...chooseByShares(queuesOf(10, 20), { leased, max: 1_000 }).chosen]
  expect(countsOf(leased).at(-1)).toBe(1)
  // In each pass ten turns end, those first that began first, and every organisation wants the slots.
  const waiting = Array.from({ length: 11 }, (_, at) => queuesOf(at, 20)).flat()
  for (let pass = 0; pass < 200; pass += 1) {
    leased = leased.slice(10)
    leased = [...leased, ...chooseByShares(waiting, { leased, max: 1_000 }).chosen]
  }
  expect(Math.min(...countsOf(leased))).toBeGreaterThan(60)
})
