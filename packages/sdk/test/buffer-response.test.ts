import { EventEmitter, once } from 'node:events'
import { createServer, request } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import express from 'express'
import { Hono } from 'hono'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { payMiddleware, walletMiddleware } from '../src/middleware/express.ts'
import { payMiddleware as honoPay } from '../src/middleware/hono.ts'
import { apiKey, close, type FakePurser, listen, problem, startFakePurser } from './fake-purser.ts'

let fake: FakePurser
beforeEach(async () => {
  fake = await startFakePurser()
})
afterEach(() => fake.stop())

const credential = { 'PAYMENT-SIGNATURE': 'eyJ4NDAyVmVyc2lvbiI6Mn0=' }

/** Sells one handler with Express for as long as `visit` runs. */
async function selling(handler: express.RequestHandler, visit: (url: string) => Promise<void>) {
  const app = express()
  app.use((_req, res, next) => {
    res.setHeader('X-Before', 'kept')
    next()
  })
  app.use(
    walletMiddleware({ apiKey, baseUrl: fake.baseUrl, walletId: 'byw_1', registry: false, retry: { delayMsFirst: 1 } }),
  )
  app.all('/', payMiddleware({ price: '0.01' }), handler)
  app.use((error: unknown, _req: unknown, res: express.Response, next: express.NextFunction) => {
    if (res.headersSent) return next(error)
    res.status(500).send('broke')
  })
  const server = createServer(app)
  const url = await listen(server)
  await visit(url).finally(() => close(server))
}

test('a handler that breaks off in the middle of its answer: nothing of it leaves, no error page is glued to it, no settlement', async () => {
  const handler: express.RequestHandler = (_req, res) => {
    res.write('half of the goods')
    throw new Error('broke off')
  }
  await selling(handler, async (url) => {
    await expect(fetch(url, { headers: credential })).rejects.toThrow(TypeError)
    expect(fake.calls('/verify')).toHaveLength(1)
    expect(fake.calls('/settle')).toHaveLength(0)
  })
})

test('what a handler says with writeHead arrives, its Cache-Control made private', async () => {
  const handler: express.RequestHandler = (_req, res) => {
    res.writeHead(201, 'Made', { 'Cache-Control': 'public', 'Set-Cookie': ['a=1', 'b=2'] })
    res.statusCode = 500
    res.write('zwölf ', 'utf8')
    res.write(Buffer.from('Stück'))
    res.end('21', 'hex')
  }
  await selling(handler, async (url) => {
    const response = await fetch(url, { headers: credential })
    expect([response.status, response.statusText]).toEqual([201, 'Made'])
    expect(response.headers.get('cache-control')).toBe('private')
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    expect(await response.text()).toBe('zwölf Stück!')
  })
})

test('a failure status set by writeHead is not settled', async () => {
  const handler: express.RequestHandler = (_req, res) => void res.writeHead(404, ['X-A', '1', 'X-B', '2']).end('none')
  await selling(handler, async (url) => {
    const response = await fetch(url, { headers: credential })
    expect([response.status, response.headers.get('x-b'), await response.text()]).toEqual([404, '2', 'none'])
    expect(fake.calls('/settle')).toHaveLength(0)
  })
})

test('a handler may use its buffer again once its write is done', async () => {
  const handler: express.RequestHandler = async (_req, res) => {
    const buffer = Buffer.from('first')
    await new Promise<void>((done) => res.write(buffer, () => done()))
    buffer.write('other')
    res.end()
  }
  await selling(handler, async (url) => {
    expect(await (await fetch(url, { headers: credential })).text()).toBe('first')
  })
})

test('a handler that awaits its stream goes on when the answer has left', async () => {
  const states: unknown[] = []
  const handler: express.RequestHandler = async (_req, res) => {
    await pipeline(Readable.from(['a', 'b']), res)
    states.push(res.writableFinished, fake.calls('/settle').length)
  }
  await selling(handler, async (url) => {
    expect(await (await fetch(url, { headers: credential })).text()).toBe('ab')
    expect(states).toEqual([true, 1])
  })
})

test('an answer withheld takes the headers of the handler with it and keeps those set before', async () => {
  fake.script('/settle', problem(409, 'settlement-failed'))
  const handler: express.RequestHandler = (_req, res) => {
    res.cookie('ticket', 'secret').set({ 'X-Before': 'changed', ETag: '"goods"', 'Content-Length': '5' }).end('goods')
  }
  await selling(handler, async (url) => {
    const response = await fetch(url, { headers: credential })
    expect([response.status, response.headers.get('x-before')]).toEqual([402, 'kept'])
    expect(response.headers.getSetCookie()).toEqual([])
    expect(response.headers.has('etag')).toBe(false)
    expect(await response.json()).toEqual({ error: 'settlement_failed' })
  })
})

test('an answer without a body is sold too', async () => {
  await selling(
    (_req, res) => void res.status(204).end(),
    async (url) => {
      const response = await fetch(url, { headers: credential })
      expect(response.status).toBe(204)
      expect(response.headers.has('payment-response')).toBe(true)
    },
  )
})

test('a caller who disconnects while the handler runs affects nothing else', async () => {
  const signals = new EventEmitter()
  const handler: express.RequestHandler = async (_req, res) => {
    signals.emit('started')
    await once(res, 'close')
    res.write('too late')
    res.end()
    signals.emit('ended')
  }
  await selling(handler, async (url) => {
    const leaving = request(url, { headers: credential }).on('error', () => {})
    leaving.end()
    await once(signals, 'started')
    leaving.destroy()
    await once(signals, 'ended')
    expect((await fetch(url)).status).toBe(402)
  })
})

test.each<[string, express.RequestHandler]>([
  ['whose stream stops when its client leaves', (_req, res) => void pipeline(endless(), res).catch(() => {})],
  [
    'that fails in the middle of its response',
    (_req, res) => {
      res.write('half of the goods')
      throw new Error('broke off')
    },
  ],
])('the payment of an unsafe handler %s is released', async (_, handler) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  await selling(handler, async (url) => {
    const leaving = request(url, { method: 'POST', headers: credential }).on('error', () => {})
    const closed = new Promise((resolve) => leaving.once('close', resolve))
    leaving.end()
    await vi.waitFor(() => expect(fake.calls('/verify')).toHaveLength(1))
    leaving.destroy()
    await closed
    await vi.waitFor(() => {
      vi.advanceTimersByTime(600_000)
      expect(fake.released).toHaveLength(1)
    })
    const repeat = await fetch(url, { method: 'POST', headers: credential })
    expect(await repeat.json()).toMatchObject({ code: 'duplicate-payment' })
    expect(fake.calls('/settle')).toHaveLength(0)
  })
})

/** A stream that never ends by itself. */
function endless(): Readable {
  return new Readable({ read() {} })
}

test('a caller who sends no usable host name reads 400', async () => {
  await selling(
    () => {},
    async (url) => {
      const asking = request(url, { headers: { host: 'not a host' } })
      asking.end()
      const [response] = await once(asking, 'response')
      expect(response.statusCode).toBe(400)
      response.resume()
      expect(fake.seen).toHaveLength(0)
    },
  )
})

test('a long host name of a caller takes no time', async () => {
  const host = Array.from({ length: 1_500 }, (_, index) => encodeURIComponent(String.fromCodePoint(0x4e00 + index)))
  const canParse = vi.spyOn(globalThis, 'URL')
  onTestFinished(() => canParse.mockRestore())
  await selling(
    () => {},
    async (url) => {
      canParse.mockClear()
      const asking = request(url, { headers: { host: host.join('') } })
      asking.end()
      const [response] = await once(asking, 'response')
      expect(response.statusCode).toBe(400)
      expect(canParse.mock.calls.filter(([text]) => String(text).length > 2_048)).toEqual([])
      response.resume()
    },
  )
})

test('a paid route without walletMiddleware before it is closed, not open', async () => {
  let runs = 0
  const app = new Hono()
  app.get('/', honoPay({ price: '0.01' }), (c) => c.text(`run ${++runs}`))
  app.onError((error, c) => c.text(error.message, 500))
  expect(await (await app.request('/')).text()).toContain('needs walletMiddleware')
  const server = createServer(
    express().get('/', payMiddleware({ price: '0.01' }), (_req, res) => void res.send(`${++runs}`)),
  )
  expect((await fetch(await listen(server))).status).toBe(500)
  await close(server)
  expect(runs).toBe(0)
})
