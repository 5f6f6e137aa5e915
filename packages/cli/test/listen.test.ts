import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { unwrap } from '@purser/sdk/webhooks'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import { Webhook as SvixWebhook } from 'svix'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type Answering, aReceiver, type Receiver, status } from '../../server/test/webhooks/receiver.ts'
import { aStage, type Stage } from '../../server/test/webhooks/stage.ts'
import type { Org } from '../../server/test/world.ts'
import { type ListeningProcess, startListening } from './listening.ts'
import { purserOf } from './stage.ts'

let stage: Stage
beforeAll(async () => {
  stage = await aStage()
})
afterAll(() => stage?.stop())

interface Scene {
  readonly own: Org
  readonly receiver: Receiver
  readonly purser: ListeningProcess
  readonly secret: string
}

const envOf = (own: Org, base = stage.world.base) => ({ PURSER_BASE_URL: base, PURSER_API_KEY: own.testKey })

async function listening(
  options: {
    readonly answer?: Answering
    readonly args?: readonly string[]
    readonly base?: string
    readonly own?: Org
  } = {},
): Promise<Scene> {
  const own = options.own ?? (await stage.world.organisation())
  const receiver = await aReceiver(options.answer)
  onTestFinished(() => receiver.stop())
  const args = ['--forward-to', receiver.url, '--format', 'json', ...(options.args ?? [])]
  const purser = startListening(envOf(own, options.base), args)
  const [greeting] = await purser.until('listening')
  return { own, receiver, purser, secret: String(greeting?.secret) }
}

test('what arrives is accepted by both official verifiers and by the client, with the secret that is printed', async () => {
  const { own, receiver, purser, secret } = await listening()
  const ids: string[] = []
  for (const type of ['payment.settled', 'vault.sealed', 'deposit.success']) {
    const made = await stage.world.call(own.testKey, 'POST', '/events/trigger', { type })
    ids.push(String(made.body.id))
  }
  const deliveries = await purser.until('delivery', 3)
  for (const { body, headers } of receiver.arrived) {
    const signed = { 'webhook-id': '', 'webhook-timestamp': '', 'webhook-signature': '', ...headers }
    for (const Verifier of [StandardWebhook, SvixWebhook])
      expect(() => new Verifier(secret).verify(body, signed)).not.toThrow()
    expect(() => new SvixWebhook(secret).verify(`${body} `, signed)).toThrow()
    expect(unwrap(body, headers, secret).type).not.toBe('unrecognized')
    expect(headers['webhook-signature']).toMatch(/^v1,\S+ v1a,\S+$/)
    expect(headers['x-service-signature']).toMatch(/^sha256=[0-9a-f]{64}$/)
  }
  expect(receiver.ids()).toEqual(ids)
  expect(deliveries.map(({ eventId, ok, status: response }) => [eventId, ok, response])).toEqual(
    ids.map((id) => [id, true, 200]),
  )
})

test('the secret is the same each time, and is printed alone for a script', async () => {
  const { own, secret } = await listening()
  const { code, stdout } = await purserOf(envOf(own), ['listen', '--print-secret'])
  expect({ code, stdout }).toEqual({ code: 0, stdout: `${secret}\n` })
})

test('Ctrl-C ends it with 0 and a sum, also while a receiver lets it wait', async () => {
  const { own, purser } = await listening()
  await stage.publish(own, 2)
  await purser.until('delivery', 2)
  purser.signal('SIGINT')
  expect([await purser.ended, purser.errors()]).toEqual([0, ''])
  expect(purser.of('stopped')).toEqual([{ kind: 'stopped', events: 2, failed: 0 }])

  const hanging = await listening({ answer: () => undefined })
  await stage.publish(hanging.own)
  await hanging.receiver.until(1)
  hanging.purser.signal('SIGTERM')
  expect([await hanging.purser.ended, hanging.purser.errors()]).toEqual([0, ''])
})

test('a receiver that refuses, redirects, hangs up or is down is shown, and nothing is sent to it twice', async () => {
  const answers: Answering[] = [
    status(500, {}, 'broken\u001b[2J'),
    status(302, { location: 'http://127.0.0.1:1/elsewhere' }),
    (response) => response.destroy(),
    status(204),
  ]
  const { own, receiver, purser } = await listening({ answer: (...given) => answers.shift()?.(...given) })
  for (let round = 1; round <= 4; round++) {
    await stage.publish(own)
    await purser.until('delivery', round)
  }
  await receiver.stop()
  await stage.publish(own)
  const deliveries = await purser.until('delivery', 5)
  expect(deliveries.map(({ ok, status: answer }) => [ok, answer])).toEqual([
    [false, 500],
    [false, 302],
    [false, null],
    [true, 204],
    [false, null],
  ])
  expect(deliveries[0]?.responseBody).toBe('broken\u001b[2J')
  expect(deliveries[4]?.error).toMatch(/connection refused/)
  expect(new Set(receiver.ids()).size).toBe(4)
  expect(purser.text()).not.toContain('\u001b')
})

test('an answer without end is not read to its end', async () => {
  const chunk = Buffer.alloc(65_536, 'x')
  let sent = 0
  const { own, purser } = await listening({
    answer: (response) => {
      const more = (): void => {
        while (sent < 1e9 && response.write(chunk)) sent += chunk.length
        response.once('drain', more)
      }
      more()
    },
  })
  await stage.publish(own)
  const [delivery] = await purser.until('delivery')
  expect(String(delivery?.responseBody)).toBe('x'.repeat(1_024))
  expect(sent).toBeLessThan(50_000_000)
})

test('only the requested events are forwarded, from the requested time on', async () => {
  const own = await stage.world.organisation()
  const [early = ''] = await stage.publish(own, 1, 'vault.sealed')
  await stage.publish(own, 5)
  const since = new Date(Date.now() - 60_000).toISOString()
  const { receiver, purser } = await listening({ own, args: ['--events', 'vault.sealed', '--since', since] })
  await purser.until('delivery')
  const [late = ''] = await stage.publish(own, 1, 'vault.sealed')
  await purser.until('delivery', 2)
  expect(receiver.ids()).toEqual([early, late])
})

test('a connection that is cut after each of thirty events: each is forwarded, in order, and none is left out', async () => {
  const cutter = await aCutter()
  const { own, receiver, purser } = await listening({ base: cutter.url })
  const ids: string[] = []
  for (let round = 1; round <= 15; round++) {
    ids.push(...(await stage.publish(own)))
    await purser.until('delivery', ids.length)
    cutter.cut()
    ids.push(...(await stage.publish(own)))
    await purser.until('delivery', ids.length)
  }
  expect(receiver.ids()).toEqual(ids)
  expect(purser.of('connecting-again').length).toBeGreaterThanOrEqual(15)
})

test('a connection that is cut while an event is at the receiver brings nothing twice and loses nothing', async () => {
  const cutter = await aCutter()
  const waiting: (() => void)[] = []
  const { own, receiver, purser } = await listening({
    base: cutter.url,
    answer: (response) => waiting.push(() => response.writeHead(200).end()),
  })
  const ids: string[] = []
  for (let round = 1; round <= 5; round++) {
    ids.push(...(await stage.publish(own)), ...(await stage.publish(own)))
    await receiver.until(2 * round - 1)
    cutter.cut()
    waiting.shift()?.()
    await receiver.until(2 * round)
    waiting.shift()?.()
    await purser.until('delivery', 2 * round)
  }
  expect(receiver.ids()).toEqual(ids)
})

test('a server that is restarted in between is found again, and what happened meanwhile comes first', async () => {
  const own = await stage.world.organisation()
  const first = await stage.world.another({ role: 'api' })
  const { receiver, purser } = await listening({ own, base: first.base })
  const ids = [...(await stage.publish(own))]
  await purser.until('delivery')
  await first.server.stop()
  ids.push(...(await stage.publish(own)))
  await purser.until('connecting-again')
  ids.push(...(await stage.publish(own)))
  await stage.world.another({ role: 'api', port: Number(new URL(first.base).port) })
  await purser.until('delivery', 3)
  ids.push(...(await stage.publish(own)))
  await purser.until('delivery', 4)
  expect(receiver.ids()).toEqual(ids)
})

test('a key that is revoked ends it with 1, and says why', async () => {
  const own = await stage.world.organisation()
  const keys = '/organisations/current/api-keys'
  const spare = await stage.world.call(own.testKey, 'POST', keys, { name: 'spare', environment: 'test' })
  const { purser } = await listening({ own: { ...own, testKey: String(spare.body.key) } })
  await stage.world.call(own.testKey, 'DELETE', `${keys}/${spare.body.id}`)
  expect(await purser.ended).toBe(1)
  expect(purser.printed.at(-1)).toMatchObject({ error: { code: 'unauthorized', status: 401 } })
  expect(purser.errors()).toBe('')
})

test('people read a line for each event, and never the whole key', async () => {
  const own = await stage.world.organisation()
  const receiver = await aReceiver((response) => void response.writeHead(500).end('out of order'))
  onTestFinished(() => receiver.stop())
  const purser = startListening(envOf(own), ['--forward-to', receiver.url])
  await untilPrinted(purser, /Signed with whsec_/)
  const [id] = await stage.publish(own)
  await untilPrinted(purser, /out of order/)
  receiver.answer = status(200)
  await stage.publish(own)
  await untilPrinted(purser, /✓ 200/)
  expect(purser.text()).toMatch(new RegExp(`✗ 500  vault.persisted  ${id}  \\d+ ms\\n +out of order\\n`))
  expect(purser.text()).not.toContain(own.testKey)
})

async function untilPrinted(purser: ListeningProcess, what: RegExp): Promise<void> {
  await expect.poll(() => purser.text(), { timeout: 90_000, interval: 20 }).toMatch(what)
}

test('the API key goes to the service alone, and the receiver gets nothing but what a delivery carries', async () => {
  const { own, receiver, purser } = await listening()
  await stage.publish(own)
  await purser.until('delivery')
  const { headers } = receiver.arrived[0] ?? {}
  expect(JSON.stringify(headers)).not.toContain(own.testKey.slice(12))
  expect(headers).toMatchObject({ 'content-type': 'application/json', 'user-agent': 'Purser-Webhooks/1.0' })
  expect(headers?.authorization).toBeUndefined()
})

/** A proxy in front of the server that closes all connections on request. */
async function aCutter(): Promise<{ readonly url: string; cut(): void }> {
  const { request: send } = await import('node:http')
  const server = createServer((request, response) => {
    const { method, headers, url = '' } = request
    const onward = send(stage.world.base + url, { method, headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      response.flushHeaders()
      answer.pipe(response).on('close', () => answer.destroy())
    })
    request.pipe(onward.on('error', () => response.destroy()))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut: () => server.closeAllConnections(),
  }
}
