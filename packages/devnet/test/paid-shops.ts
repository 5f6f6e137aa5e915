import { createServer, type Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import * as onExpress from '@purser/sdk/express'
import * as onFastify from '@purser/sdk/fastify'
import * as onHono from '@purser/sdk/hono'
import * as onNext from '@purser/sdk/next'
import express, { type Express } from 'express'
import Fastify from 'fastify'
import { Hono } from 'hono'

/** A provider's server with paid routes: `/report` sells, `/breaks` fails after payment. */
export interface PaidShop {
  readonly url: string
  /** Handlers that ran, by the payer whom `paymentOf` named. */
  readonly served: (string | null)[]
  readonly faults: onExpress.Fault[]
  stop(): Promise<void>
}

type Account = 'apiKey' | 'baseUrl' | 'walletId' | 'otherWalletIds' | 'signOffers' | 'challengeBatch' | 'publicUrl'

/** A shop's account with Purser, and a test's overrides. */
export interface ShopAccount extends Pick<onExpress.WalletOptions, Account> {
  /** Decimal dollars; `price` when left out. */
  readonly price?: string
  /** Adds free routes before the paid ones. With Express alone. */
  readonly free?: (app: Express) => void
}

const price = '0.01'
const report = { report: 'all is well' }
const failure = { error: 'the printer is on fire' }

/** What a shop records, and the middleware options that record it. */
function openBooks({ price: own = price, free: _, ...till }: ShopAccount) {
  const served: PaidShop['served'] = []
  const faults: PaidShop['faults'] = []
  const onFault = (fault: onExpress.Fault) => void faults.push(fault)
  const retry = { delayMsFirst: 5, delayMsMax: 10 }
  return {
    seen: { served, faults },
    wallet: { ...till, retry, onFault },
    offer: { price: own, description: 'A report', mimeType: 'application/json' },
    serve: (payment: onExpress.VerifiedPayment | undefined) => void served.push(payment?.payer ?? null),
  }
}

export async function expressShop(till: ShopAccount): Promise<PaidShop> {
  const { seen, wallet, offer, serve } = openBooks(till)
  const app = express()
  till.free?.(app)
  app.use(onExpress.walletMiddleware(wallet))
  app.use(onExpress.payMiddleware(offer))
  app.get('/report', (req, res) => {
    serve(onExpress.paymentOf(req))
    res.json(report)
  })
  app.get('/breaks', (req, res) => {
    serve(onExpress.paymentOf(req))
    res.status(500).json(failure)
  })
  return { ...seen, ...(await open(createServer(app))) }
}

export async function fastifyShop(till: ShopAccount): Promise<PaidShop> {
  const { seen, wallet, offer, serve } = openBooks(till)
  const app = Fastify()
  await app.register(onFastify.walletPlugin, wallet)
  app.addHook('preHandler', onFastify.payHook(offer))
  app.get('/report', async (request) => {
    serve(onFastify.paymentOf(request))
    return report
  })
  app.get('/breaks', async (request, reply) => {
    serve(onFastify.paymentOf(request))
    return reply.code(500).send(failure)
  })
  await app.ready()
  return { ...seen, ...(await open(app.server)) }
}

async function honoShop(till: ShopAccount): Promise<PaidShop> {
  const { seen, wallet, offer, serve } = openBooks(till)
  const app = new Hono()
  app.use(onHono.walletMiddleware(wallet))
  app.use(onHono.payMiddleware(offer))
  app.get('/report', (c) => {
    serve(onHono.paymentOf(c))
    return c.json(report)
  })
  app.get('/breaks', (c) => {
    serve(onHono.paymentOf(c))
    return c.json(failure, 500)
  })
  return { ...seen, ...(await open(bridge(app.fetch))) }
}

/** Route handlers of Next's App Router, given the standard requests that Next's own extend. */
async function nextShop(till: ShopAccount): Promise<PaidShop> {
  const { seen, wallet, offer, serve } = openBooks(till)
  const handler = onNext.withPayment({ ...wallet, ...offer }, (request: Request, _context: unknown) => {
    serve(onNext.paymentOf(request))
    const sells = new URL(request.url).pathname === '/report'
    return sells ? Response.json(report) : Response.json(failure, { status: 500 })
  })
  return { ...seen, ...(await open(bridge((request) => handler(request, undefined)))) }
}

/** By framework. */
export const shops = { Express: expressShop, Fastify: fastifyShop, Hono: honoShop, Next: nextShop } as const

function bridge(fetch: (request: Request) => Response | Promise<Response>): Server {
  const server = createAdaptorServer({ fetch })
  if (!('closeAllConnections' in server)) throw new Error('not an HTTP/1 server')
  return server
}

async function open(server: Server): Promise<Pick<PaidShop, 'url' | 'stop'>> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  return {
    url: `http://127.0.0.1:${address.port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
