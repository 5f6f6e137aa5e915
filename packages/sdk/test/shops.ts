import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import { createAdaptorServer } from '@hono/node-server'
import express, { type Request } from 'express'
import { type Context, Hono } from 'hono'
import type { Fault, PayOptions, VerifiedPayment, WalletOptions } from '../src/middleware/express.ts'
import * as onExpress from '../src/middleware/express.ts'
import * as onHono from '../src/middleware/hono.ts'
import { apiKey, close, type FakePurser, listen } from './fake-purser.ts'

/** What is bought at /paid; at /fails, /throws, /huge and /streams the handler misbehaves as the name says. */
export const goods = { secret: 'the goods' }

export interface Shop {
  readonly url: string
  readonly runs: (VerifiedPayment | undefined)[]
  readonly faults: Fault[]
  readonly close: () => Promise<void>
}

export interface ShopOptions {
  readonly wallet?: Partial<WalletOptions>
  readonly pay?: Partial<Omit<PayOptions<Request | Context>, 'price'>>
}

function walletOf(fake: FakePurser, faults: Fault[], options: ShopOptions): WalletOptions {
  const retry = { delayMsFirst: 1, delayMsMax: 2 }
  const onFault = (fault: Fault) => void faults.push(fault)
  return { apiKey, baseUrl: fake.baseUrl, walletId: 'byw_1', retry, onFault, ...options.wallet }
}

/** A provider's server with Express: the paid routes, and a middleware before them that sets headers of its own. */
export async function expressShop(fake: FakePurser, options: ShopOptions = {}): Promise<Shop> {
  const { faults, runs }: Pick<Shop, 'faults' | 'runs'> = { faults: [], runs: [] }
  const app = express()
  app.use((_req, res, next) => {
    res.setHeader('Access-Control-Expose-Headers', 'X-Own')
    next()
  })
  app.use(onExpress.walletMiddleware(walletOf(fake, faults, options)))
  const price = (req: Request) => String(req.query.price ?? '0.01')
  app.use(onExpress.payMiddleware({ price, description: 'Goods', mimeType: 'application/json', ...options.pay }))
  app.use((req, _res, next) => {
    runs.push(onExpress.paymentOf(req))
    next()
  })
  app.get(
    '/paid',
    (_req, res) => void res.set({ 'Cache-Control': 'public, max-age=60', 'X-Leak': 'goods' }).json(goods),
  )
  app.get('/fails', (_req, res) => void res.status(422).json({ error: 'no such city' }))
  app.get('/throws', () => {
    throw new Error('the handler broke')
  })
  app.get('/huge', (_req, res) => void Readable.from(parts(40)).pipe(res))
  app.get('/streams', (_req, res) => void Readable.from(parts(4)).pipe(res.type('text/plain')))
  app.use((_error: unknown, _req: unknown, res: express.Response, _next: unknown) => void res.status(500).send('broke'))
  const server = createServer(app)
  return { url: await listen(server), runs, faults, close: () => close(server) }
}

/** The same with Hono on Node. */
export async function honoShop(fake: FakePurser, options: ShopOptions = {}): Promise<Shop> {
  const { faults, runs }: Pick<Shop, 'faults' | 'runs'> = { faults: [], runs: [] }
  const app = new Hono()
  app.use(async (c, next) => {
    c.res.headers.set('Access-Control-Expose-Headers', 'X-Own')
    await next()
  })
  app.use(onHono.walletMiddleware(walletOf(fake, faults, options)))
  const price = (c: Context) => c.req.query('price') ?? '0.01'
  app.use(onHono.payMiddleware({ price, description: 'Goods', mimeType: 'application/json', ...options.pay }))
  app.use(async (c, next) => {
    runs.push(onHono.paymentOf(c))
    await next()
  })
  app.get('/paid', (c) => c.json(goods, 200, { 'Cache-Control': 'public, max-age=60', 'X-Leak': 'goods' }))
  app.get('/fails', (c) => c.json({ error: 'no such city' }, 422))
  app.get('/throws', () => {
    throw new Error('the handler broke')
  })
  app.get('/huge', () => new Response(streamOf(40)))
  app.get('/streams', () => new Response(streamOf(4), { headers: { 'content-type': 'text/plain' } }))
  app.onError((_error, c) => c.text('broke', 500))
  const server = createAdaptorServer({ fetch: app.fetch })
  if (!('closeAllConnections' in server)) throw new Error('not an HTTP/1 server')
  return { url: await listen(server), runs, faults, close: () => close(server) }
}

/** So many times 64 KiB. */
async function* parts(count: number): AsyncGenerator<Uint8Array> {
  for (let part = 0; part < count; part++) yield new Uint8Array(65_536).fill(97 + part)
}

function streamOf(count: number): ReadableStream<Uint8Array> {
  const source = parts(count)
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await source.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
  })
}
