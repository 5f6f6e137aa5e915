import { createServer } from 'node:http'
import { payMiddleware, paymentOf, walletMiddleware } from '@purser/sdk/express'
import express from 'express'
import type { DevRecord } from './dev-file.ts'

/** A provider's server with one paid route. */
export interface Provider {
  readonly url: string
  /** How often the route's handler ran. */
  served(): number
  stop(): Promise<void>
}

export const demoPrice = '0.01'

/** What a provider writes: an Express app, our middleware, a price. */
export async function startProvider({ apiKey, baseUrl, walletId }: DevRecord): Promise<Provider> {
  let served = 0
  const app = express()
  app.use(walletMiddleware({ apiKey, baseUrl, walletId }))
  app.get('/forecast', payMiddleware({ price: demoPrice, description: 'Weather forecast' }), (req, res) => {
    served += 1
    res.json({ forecast: 'sunny', paidBy: paymentOf(req)?.payer })
  })
  const server = createServer(app)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}/forecast`,
    served: () => served,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
