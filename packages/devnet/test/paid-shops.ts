import { createServer, type Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import * as onExpress from '@purser/sdk/express'
import * as onHono from '@purser/sdk/hono'
import express from 'express'
import { Hono } from 'hono'

/** A provider's server with paid routes: `/report` sells, `/breaks` fails after it was paid for. */
export interface PaidShop {
  readonly url: string
  /** Handlers that ran, by the payer whom `paymentOf` named. */
  readonly served: (string | null)[]
  readonly faults: onExpress.Fault[]
  stop(): Promise<void>
}

type Till = Pick<onExpress.WalletOptions, 'apiKey' | 'baseUrl' | 'walletId'>

export const price = '0.01'
const offer = { price, description: 'A report', mimeType: 'application/json' }
const brief = { delayMsFirst: 5, delayMsMax: 10 }

export async function expressShop(till: Till): Promise<PaidShop> {
  const served: PaidShop['served'] = []
  const faults: PaidShop['faults'] = []
  const app = express()
  app.use(onExpress.walletMiddleware({ ...till, retry: brief, onFault: (fault) => void faults.push(fault) }))
  app.use(onExpress.payMiddleware(offer))
  app.get('/report', (req, res) => {
    served.push(onExpress.paymentOf(req)?.payer ?? null)
    res.json({ report: 'all is well' })
  })
  app.get('/breaks', (req, res) => {
    served.push(onExpress.paymentOf(req)?.payer ?? null)
    res.status(500).json({ error: 'the printer is on fire' })
  })
  return { served, faults, ...(await open(createServer(app))) }
}

export async function honoShop(till: Till): Promise<PaidShop> {
  const served: PaidShop['served'] = []
  const faults: PaidShop['faults'] = []
  const app = new Hono()
  app.use(onHono.walletMiddleware({ ...till, retry: brief, onFault: (fault) => void faults.push(fault) }))
  app.use(onHono.payMiddleware(offer))
  app.get('/report', (c) => {
    served.push(onHono.paymentOf(c)?.payer ?? null)
    return c.json({ report: 'all is well' })
  })
  app.get('/breaks', (c) => {
    served.push(onHono.paymentOf(c)?.payer ?? null)
    return c.json({ error: 'the printer is on fire' }, 500)
  })
  const server = createAdaptorServer({ fetch: app.fetch })
  if (!('closeAllConnections' in server)) throw new Error('not an HTTP/1 server')
  return { served, faults, ...(await open(server)) }
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
