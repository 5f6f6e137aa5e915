import { expect, test } from 'vitest'
import { id } from '../../../platform/ids.ts'
import { EndpointQueue } from './endpoint.ts'
import { endTurns, withoutLeaving } from './turns.ts'

const digits = (number: number) => String(number).padStart(26, '0')
const [organisationId, another] = [id('org').parse(`org_${digits(0)}`), id('org').parse(`org_${digits(1)}`)]
const leasedBy = (owner: typeof organisationId, count: number) =>
  Array.from(
    { length: count },
    (_, at) => new EndpointQueue({ webhookId: id('wh').parse(`wh_${digits(at)}`), organisationId: owner }, at),
  )
const leaving = (leased: readonly EndpointQueue[]) =>
  leased.filter(({ isLeaving }) => isLeaving).map(({ leasedSince }) => leasedSince)

test('one waiting queue ends one turn, of the endpoint that was leased first, also after that endpoint has left', () => {
  let leased = leasedBy(organisationId, 500)
  const waiting = new Map([[organisationId, 1]])
  for (let pass = 0; pass < 3; pass += 1) {
    endTurns(leased, { waiting, before: 1_000, isFull: false })
    leased = leased.filter(({ isLeaving }) => !isLeaving)
  }
  expect([leased.length, leased[0]?.leasedSince]).toEqual([499, 1])
})

test('a queue that is listed again while an endpoint of its organisation is leaving ends no second turn', () => {
  const leased = leasedBy(organisationId, 3)
  const list = () => withoutLeaving(new Map([[organisationId, 1]]), leased)
  endTurns(leased, { waiting: list(), before: 1_000, isFull: false })
  endTurns(leased, { waiting: list(), before: 1_000, isFull: false })
  expect(leaving(leased)).toEqual([0])
})

test('endpoints of other organisations, and those that were leased lately, keep their turns', () => {
  const leased = [...leasedBy(another, 2), ...leasedBy(organisationId, 4)]
  endTurns(leased, { waiting: new Map([[organisationId, 3]]), before: 2, isFull: false })
  expect(leased.map(({ isLeaving }) => isLeaving)).toEqual([false, false, true, true, false, false])
})

test('where no slot is free, all turns end that have lasted long enough', () => {
  const leased = [...leasedBy(another, 2), ...leasedBy(organisationId, 4)]
  endTurns(leased, { waiting: new Map(), before: 3, isFull: true })
  expect(leaving(leased)).toEqual([0, 1, 0, 1, 2])
})
