import { createServer, type Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import { HTTPFacilitatorClient, type RoutesConfig, x402ResourceServer } from '@x402/core/server'
import type { SettleResponse } from '@x402/core/types'
import { ExactEvmScheme } from '@x402/evm/exact/server'
import { paymentMiddleware as onExpress } from '@x402/express'
import { bazaarResourceServerExtension, declareDiscoveryExtension } from '@x402/extensions/bazaar'
import { declarePaymentIdentifierExtension } from '@x402/extensions/payment-identifier'
import { paymentMiddleware as onHono } from '@x402/hono'
import express from 'express'
import { Hono } from 'hono'

/** A shop behind the official middleware. It has only the facilitator's address and the credentials for it. */
export interface OfficialShop {
  readonly url: string
  /** Paths whose handlers ran, in order. */
  readonly served: string[]
  stop(): Promise<void>
}

export interface OfficialShopAccount {
  readonly facilitatorUrl: string
  readonly apiKey: string
  readonly payTo: string
  /** Runs with each settle response of the facilitator, before the server reads it. */
  readonly onSettled?: (response: SettleResponse) => Promise<void>
}

const network = 'eip155:84532'

/** The official facilitator client, pointed at Purser. */
export function facilitatorClient(till: Omit<OfficialShopAccount, 'payTo'>): HTTPFacilitatorClient {
  const headers = { Authorization: `Bearer ${till.apiKey}` }
  const createAuthHeaders = async () => ({ verify: headers, settle: headers, supported: headers, bazaar: headers })
  const client = new HTTPFacilitatorClient({ url: till.facilitatorUrl, createAuthHeaders })
  const { onSettled } = till
  if (onSettled === undefined) return client
  const settle = client.settle.bind(client)
  client.settle = async (payment, requirements) => {
    const response = await settle(payment, requirements)
    await onSettled(response)
    return response
  }
  return client
}

export async function officialExpressShop(till: OfficialShopAccount): Promise<OfficialShop> {
  const served: string[] = []
  const app = express()
  app.use(onExpress(routesOf(till), resourceServer(till)))
  for (const path of paths) {
    app.get(path, (_req, res) => {
      served.push(path)
      if (path === '/breaks') res.status(500).json({ error: 'the printer is on fire' })
      else res.json({ report: 'all is well' })
    })
  }
  return { served, ...(await open(createServer(app))) }
}

export async function officialHonoShop(till: OfficialShopAccount): Promise<OfficialShop> {
  const served: string[] = []
  const app = new Hono()
  app.use(onHono(routesOf(till), resourceServer(till)))
  for (const path of paths) {
    app.get(path, (c) => {
      served.push(path)
      return path === '/breaks' ? c.json({ error: 'the printer is on fire' }, 500) : c.json({ report: 'all is well' })
    })
  }
  const server = createAdaptorServer({ fetch: app.fetch })
  if (!('closeAllConnections' in server)) throw new Error('not an HTTP/1 server')
  return { served, ...(await open(server)) }
}

const paths = ['/report', '/upfront', '/breaks'] as const

function resourceServer(till: OfficialShopAccount): x402ResourceServer {
  return new x402ResourceServer(facilitatorClient(till))
    .register(network, new ExactEvmScheme())
    .registerExtension(bazaarResourceServerExtension)
}

function routesOf({ payTo }: OfficialShopAccount): RoutesConfig {
  const accepts = { scheme: 'exact', price: '$0.01', network, payTo } as const
  const extensions = {
    ...declareDiscoveryExtension({
      input: { city: 'Lima' },
      inputSchema: { properties: { city: { type: 'string' } } },
    }),
    'payment-identifier': declarePaymentIdentifierExtension(),
  }
  return {
    'GET /report': { accepts, description: 'A report', mimeType: 'application/json', extensions },
    'GET /upfront': { accepts: { ...accepts, extra: { paymentFlow: 'upfront' } }, description: 'A report, paid first' },
    'GET /breaks': { accepts, description: 'A printer' },
  }
}

async function open(server: Server): Promise<Pick<OfficialShop, 'url' | 'stop'>> {
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
