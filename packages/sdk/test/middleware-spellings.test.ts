import { request } from 'node:http'
import { describe, expect, test } from 'vitest'
import { goods } from './shops.ts'
import { frameworks, stageOf } from './stage.ts'

/** As they are sent on the wire: `fetch` would resolve the steps first. */
const spellings = [
  ...['/a//../paid', '/a/%2F../paid', '/a/./../paid', '/a/../paid', '/%2e%2e/paid', '/a/%252e%252e/paid'],
  ...['//paid', '/paid/', '/paid//', '/./paid', '/PAID', '/%70aid', '/paid%0A', '/paid%20', '/paid;a=1'],
  ...['/pa%FFid', '/paid%FF', '/pa%id', '/paid%00', '/paid?%FF', 'http://shop.test/paid', 'http://shop.test//paid'],
]

function sendRaw(url: string, path: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const sent = request({ hostname, port, path, agent: false }, (response) => {
      response.setEncoding('utf8')
      let body = ''
      response.on('data', (chunk: string) => {
        body += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
    })
    sent.on('error', reject)
    sent.end()
  })
}

describe.each(frameworks)('%s', (_name, openShop) => {
  const at = stageOf(openShop)

  test('no spelling of a path is served without a payment', async () => {
    for (const path of spellings) {
      const { status, body } = await sendRaw(at.shop.url, path)
      expect(status, path).toBeGreaterThanOrEqual(400)
      expect(body, path).not.toContain(goods.secret)
    }
    expect(at.shop.runs).toEqual([])
  })
})
