import { expect, test } from 'vitest'
import { id } from '../../../platform/ids.ts'
import { EndpointQueue, shareFirst, shareMax } from './endpoint.ts'
import type { DueRow, EndpointRow } from './queue-store.ts'

const webhookId = id('wh').parse('wh_01h455vb4pex5vsknk084sn02q')
const row: EndpointRow = {
  id: webhookId,
  organisationId: id('org').parse('org_01h455vb4pex5vsknk084sn02q'),
  environment: 'test',
  url: 'https://example.com/',
  failingSince: null,
  secrets: [],
}

/** An endpoint that was just read, with this many deliveries due. */
function anEndpoint(due: number, failingSince: Date | null = null): EndpointQueue {
  const endpoint = new EndpointQueue({ webhookId, organisationId: row.organisationId }, 0)
  const digits = (number: number) => String(number).padStart(26, '0')
  const rows = Array.from(
    { length: due },
    (_, number): DueRow => ({
      id: id('del').parse(`del_${digits(number)}`),
      webhookId,
      eventId: id('evt').parse(`evt_${digits(number)}`),
      type: 'vault.sealed',
      attempts: 0,
      step: 0,
      payload: '{}',
    }),
  )
  endpoint.read({ ...row, failingSince }, rows, 0)
  return endpoint
}

/** Starts as many deliveries as the share allows. */
function start(endpoint: EndpointQueue, most = shareMax): number {
  let started = 0
  while (endpoint.next(0, most) !== undefined) started += 1
  return started
}

test('an endpoint’s share starts small, grows by one with each accepted delivery, and has a maximum', () => {
  const endpoint = anEndpoint(1_000)
  let underWay = start(endpoint)
  expect(underWay).toBe(shareFirst)
  for (let taken = 1; taken <= 100; taken++) {
    endpoint.answered('taken')
    underWay += start(endpoint) - 1
    expect(underWay).toBe(Math.min(shareFirst + taken, shareMax))
  }
})

test('an endpoint that fails returns to its first share, and gets one delivery at a time while it is known to fail', () => {
  const endpoint = anEndpoint(1_000)
  start(endpoint)
  for (let taken = 0; taken < 20; taken++) {
    endpoint.answered('taken')
    start(endpoint)
  }
  endpoint.answered('failed')
  expect(start(endpoint)).toBe(0)
  for (let left = shareFirst + 19; left >= shareFirst; left--) endpoint.answered('failed')
  expect(start(endpoint)).toBe(1)
  expect(start(anEndpoint(10, new Date(0)))).toBe(1)
})

test('while a process has many deliveries in flight, an endpoint has only its first share, however fast it is', () => {
  const endpoint = anEndpoint(1_000)
  expect(start(endpoint, shareFirst)).toBe(shareFirst)
  endpoint.answered('taken')
  expect(start(endpoint, shareFirst)).toBe(1)
})

test('an endpoint that answered 410 gets nothing more, though more was read', () => {
  const endpoint = anEndpoint(1_000)
  start(endpoint)
  endpoint.answered('gone')
  expect(start(endpoint)).toBe(0)
  expect(endpoint.wants(10_000, 50)).toBe(false)
})
