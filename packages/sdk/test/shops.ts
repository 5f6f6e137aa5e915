import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import { createAdaptorServer } from '@hono/node-server'
import express, { type Request as ExpressRequest } from 'express'
import Fastify, { type FastifyRequest } from 'fastify'
import { type Context, Hono } from 'hono'
import { etag } from 'hono/etag'
import { NextRequest } from 'next/server.js'
import * as onExpress from '../src/middleware/express.ts'
import * as onFastify from '../src/middleware/fastify.ts'
import * as onHono from '../src/middleware/hono.ts'
import * as onNext from '../src/middleware/next.ts'
import { apiKey, close, type FakePurser, listen } from './fake-purser.ts'

/** What is bought at /paid; /vault works in its vault; /unchanged is 304 and /moved 303; at /fails, /throws, /huge and /streams the handler misbehaves as the name says. */
export const goods = { secret: 'the goods' }

export interface Shop {
  readonly url: string
  readonly runs: (onExpress.VerifiedPayment | undefined)[]
  readonly sessions: (onExpress.Session | undefined)[]
  readonly faults: onExpress.Fault[]
  readonly close: () => Promise<void>
}

export interface ShopOptions {
  readonly wallet?: Partial<onExpress.WalletOptions>
  readonly pay?: Partial<Omit<onExpress.PayOptions<unknown>, 'price' | 'bindBody'>>
  /** The handler at /slow waits for it. */
  readonly slow?: Promise<void>
  /** Binds the body, read in the framework's own way. */
  readonly bindsBody?: true
}

type Seen = Pick<Shop, 'faults' | 'runs' | 'sessions'>

const nothingSeen = (): Seen => ({ faults: [], runs: [], sessions: [] })
const cached = { 'CDN-Cache-Control': 'max-age=600', 'Surrogate-Control': 'max-age=600', 'X-Accel-Expires': '600' }
const headers = { 'Cache-Control': 'public, max-age=60', ...cached, 'X-Leak': 'goods', Vary: 'Accept-Language' }

function walletOf(fake: FakePurser, { faults }: Seen, options: ShopOptions): onExpress.WalletOptions {
  const retry = { delayMsFirst: 1, delayMsMax: 2 }
  const onFault = (fault: onExpress.Fault) => void faults.push(fault)
  // Off by default, because the tests list every request to Purser. The registry tests turn it on.
  return { apiKey, baseUrl: fake.baseUrl, walletId: 'byw_1', registry: false, retry, onFault, ...options.wallet }
}

/** The price is in the query of the URL, for tests only. */
function payOf<R>(addressOf: (request: R) => string, bodyOf: (request: R) => Body, options: ShopOptions) {
  const price = (request: R) => new URL(addressOf(request), 'http://shop.test').searchParams.get('price') ?? '0.01'
  const bindBody = options.bindsBody === undefined ? undefined : bodyOf
  return { price, bindBody, description: 'Goods', mimeType: 'application/json', ...options.pay }
}

type Body = Uint8Array | string | Promise<Uint8Array>

/** A provider's server with Express: the paid routes, and a middleware before them that sets headers of its own. */
export async function expressShop(fake: FakePurser, options: ShopOptions = {}): Promise<Shop> {
  const seen = nothingSeen()
  const app = express()
  app.use((_req, res, next) => {
    res.setHeader('Access-Control-Expose-Headers', 'X-Own')
    res.setHeader('Vary', 'Accept-Encoding')
    next()
  })
  app.use(express.raw({ type: '*/*' }))
  app.use(onExpress.walletMiddleware(walletOf(fake, seen, options)))
  const bodyOf = ({ body }: ExpressRequest) => new Uint8Array(body)
  app.use(onExpress.payMiddleware(payOf(({ url }: ExpressRequest) => url, bodyOf, options)))
  app.use((req, _res, next) => {
    seen.runs.push(onExpress.paymentOf(req))
    seen.sessions.push(onExpress.sessionOf(req))
    next()
  })
  app.use(onExpress.vaultMiddleware())
  app.all('/vault', async (req, res) => void res.json(await workIn(req.vault)))
  app.get('/fails', (_req, res) => void res.status(422).json({ error: 'no such city' }))
  app.get('/throws', () => {
    throw new Error('the handler broke')
  })
  app.get('/huge', (_req, res) => void Readable.from(parts(40)).pipe(res))
  app.get('/streams', (_req, res) => void Readable.from(parts(4)).pipe(res.type('text/plain')))
  app.all('/slow', async (_req, res) => {
    await options.slow
    res.json(goods)
  })
  app.get('/unchanged', (_req, res) => void res.status(304).end())
  app.get('/moved', (_req, res) => void res.redirect(303, '/elsewhere'))
  app.all('/paid', (_req, res) => void res.set(headers).json(goods))
  app.use((_error: unknown, _req: unknown, res: express.Response, _next: unknown) => void res.status(500).send('broke'))
  const server = createServer(app)
  return { url: await listen(server), ...seen, close: () => close(server) }
}

/** A shop with Fastify. */
export async function fastifyShop(fake: FakePurser, options: ShopOptions = {}): Promise<Shop> {
  const seen = nothingSeen()
  const app = Fastify()
  const early = { 'Access-Control-Expose-Headers': 'X-Own', Vary: 'Accept-Encoding' }
  app.addHook('onRequest', async (_request, reply) => void reply.headers(early))
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  await app.register(onFastify.walletPlugin, walletOf(fake, seen, options))
  const bodyOf = ({ body }: FastifyRequest) => (typeof body === 'string' || body instanceof Uint8Array ? body : '')
  app.addHook('preHandler', onFastify.payHook(payOf(({ url }: FastifyRequest) => url, bodyOf, options)))
  app.addHook('preHandler', async (request) => {
    seen.runs.push(onFastify.paymentOf(request))
    seen.sessions.push(onFastify.sessionOf(request))
  })
  app.addHook('preHandler', onFastify.vaultHook())
  app.all('/vault', (request) => workIn(request.vault))
  app.get('/fails', (_request, reply) => reply.code(422).send({ error: 'no such city' }))
  app.get('/throws', async () => {
    throw new Error('the handler broke')
  })
  app.get('/huge', (_request, reply) => reply.send(Readable.from(parts(40))))
  app.get('/streams', (_request, reply) => reply.type('text/plain').send(Readable.from(parts(4))))
  app.all('/slow', async () => {
    await options.slow
    return goods
  })
  app.get('/unchanged', (_request, reply) => reply.code(304).send())
  app.get('/moved', (_request, reply) => reply.redirect('/elsewhere', 303))
  app.all('/paid', (_request, reply) => reply.headers(headers).send(goods))
  app.setErrorHandler((_error, _request, reply) => reply.code(500).send('broke'))
  await app.ready()
  return { url: await listen(app.server), ...seen, close: () => close(app.server) }
}

/** A shop with Hono on Node. */
export async function honoShop(fake: FakePurser, options: ShopOptions = {}): Promise<Shop> {
  const seen = nothingSeen()
  const app = new Hono()
  app.use(async (c, next) => {
    c.res.headers.set('Access-Control-Expose-Headers', 'X-Own')
    c.res.headers.set('Vary', 'Accept-Encoding')
    await next()
  })
  app.use(onHono.walletMiddleware(walletOf(fake, seen, options)))
  const bodyOf = async (c: Context) => new Uint8Array(await c.req.arrayBuffer())
  app.use(onHono.payMiddleware(payOf((c: Context) => c.req.url, bodyOf, options)))
  app.use(async (c, next) => {
    seen.runs.push(onHono.paymentOf(c))
    seen.sessions.push(onHono.sessionOf(c))
    await next()
  })
  app.use(onHono.vaultMiddleware())
  app.use(etag())
  app.all('/vault', async (c) => c.json(await workIn(c.get('vault'))))
  app.get('/fails', (c) => c.json({ error: 'no such city' }, 422))
  app.get('/throws', () => {
    throw new Error('the handler broke')
  })
  app.get('/huge', () => new Response(streamOf(40)))
  app.get('/streams', () => new Response(streamOf(4), { headers: { 'content-type': 'text/plain' } }))
  app.all('/slow', async (c) => {
    await options.slow
    return c.json(goods)
  })
  app.get('/unchanged', (c) => c.body(null, 304))
  app.get('/moved', (c) => c.redirect('/elsewhere', 303))
  app.all('/paid', (c) => c.json(goods, 200, headers))
  app.onError((_error, c) => c.text('broke', 500))
  return serve(seen, app.fetch)
}

/** A shop with a route handler of Next's App Router, which gets Next's own request. */
export async function nextShop(fake: FakePurser, options: ShopOptions = {}): Promise<Shop> {
  const seen = nothingSeen()
  const bodyOf = async (request: NextRequest) => new Uint8Array(await request.clone().arrayBuffer())
  const pay = payOf((request: NextRequest) => request.url, bodyOf, options)
  const route = onNext.withPayment({ ...walletOf(fake, seen, options), ...pay }, (request, _context: unknown) => {
    seen.runs.push(onNext.paymentOf(request))
    seen.sessions.push(onNext.sessionOf(request))
    if (request.nextUrl.pathname === '/vault') return vaultAnswer(request)
    if (request.nextUrl.pathname === '/slow') return slowAnswer(options)
    return nextAnswer(request.nextUrl.pathname)
  })
  return serve(seen, async (request) => {
    const { method, headers, body, signal } = request
    const requested = new NextRequest(request.url, {
      method,
      headers,
      signal,
      ...(body !== null && { body, duplex: 'half' }),
    })
    return route(requested, undefined).catch(() => new Response('broke', { status: 500 }))
  })
}

async function slowAnswer({ slow }: ShopOptions): Promise<Response> {
  await slow
  return Response.json(goods)
}

async function vaultAnswer(request: Request): Promise<Response> {
  return Response.json(await workIn(request.method === 'PUT' ? undefined : onNext.vaultOf(request)))
}

/** Uses a vault in every way that there is. */
async function workIn(vault: onExpress.PaidVault | undefined): Promise<object> {
  if (vault === undefined) return { vault: 'none' }
  await vault.addDocument('Findings', { found: 7 })
  await vault.addFile('report.txt', new Blob(['the report']), 'text/plain')
  await vault.emit('progress', { percent: 100 })
  await vault.persist()
  await vault.seal('All done')
  const { documents } = await vault.getManifest()
  return { vault: await vault.id(), documents: documents.length }
}

function nextAnswer(path: string): Response {
  const own = { 'Access-Control-Expose-Headers': 'X-Own' }
  if (path === '/paid') return Response.json(goods, { headers: { ...headers, ...own } })
  if (path === '/unchanged') return new Response(null, { status: 304 })
  if (path === '/moved') return new Response(null, { status: 303, headers: { location: '/elsewhere' } })
  if (path === '/fails') return Response.json({ error: 'no such city' }, { status: 422 })
  if (path === '/huge') return new Response(streamOf(40))
  if (path === '/streams') return new Response(streamOf(4), { headers: { 'content-type': 'text/plain' } })
  if (path === '/throws') throw new Error('the handler broke')
  return new Response('nothing here', { status: 404 })
}

async function serve(seen: Seen, fetch: (request: Request) => Response | Promise<Response>): Promise<Shop> {
  const server = createAdaptorServer({ fetch })
  if (!('closeAllConnections' in server)) throw new Error('not an HTTP/1 server')
  return { url: await listen(server), ...seen, close: () => close(server) }
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
