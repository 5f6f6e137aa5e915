import { afterEach, beforeEach, expect, test } from 'vitest'
import { aToyServer, beginToys, endToys } from '../../../test/toy-server.ts'

beforeEach(beginToys)
afterEach(endToys)

test('HEAD of a page has the status and the headers of GET and no body (RFC 9110, section 9.3.2)', async () => {
  const { base } = await aToyServer()
  const own = ['date', 'x-request-id', 'ratelimit', 'connection', 'keep-alive']
  for (const path of ['/page', '/page/large', '/page/missing']) {
    const [head, got] = [await fetch(`${base}${path}`, { method: 'HEAD' }), await fetch(`${base}${path}`)]
    const shown = ({ status, headers }: Response) => [status, [...headers].filter(([name]) => !own.includes(name))]
    if (path !== '/page/missing') expect([path, ...shown(head)]).toEqual([path, ...shown(got)])
    expect([path, head.status, await head.text()]).toEqual([path, got.status, ''])
    await got.arrayBuffer()
  }
})

test('HEAD of a page whose GET changes something is not found and does not call the page', async () => {
  let count = 0
  const respond = () => {
    count += 1
    return { status: 200, headers: {}, body: 'in' }
  }
  const { base } = await aToyServer({ pages: [{ path: '/link', getChanges: true, respond }] })
  expect([(await fetch(`${base}/link`, { method: 'HEAD' })).status, count]).toEqual([404, 0])
  expect([(await fetch(`${base}/link`)).status, count]).toEqual([200, 1])
})
