import { createServer } from 'node:http'
import { createPurser } from '@purser/sdk'
import { payMiddleware, paymentOf, walletMiddleware } from '@purser/sdk/express'
import express, { type Express } from 'express'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { demoPrice } from './demo-price.ts'
import { researchRoutes } from './demo-research.ts'
import type { DevRecord } from './dev-file.ts'

/** A provider's server with paid routes. */
export interface Provider {
  /** Sells a forecast. */
  readonly forecastUrl: string
  /** The base of `/open`, `/fill` and `/seal`: research, sold in three calls. */
  readonly researchUrl: string
  /** The wallet on Tempo that may be paid instead of the one on Base. */
  readonly tempoWalletId: string
  /** Returns the number of times that the forecast's handler ran. */
  served(): number
  stop(): Promise<void>
}

/** The code of a provider: an Express app, our middleware, a price. A second wallet takes payments on Tempo. */
export async function startProvider(dev: DevRecord): Promise<Provider> {
  const { apiKey, baseUrl, walletId } = dev
  const tempoWalletId = await walletOnTempo(dev)
  let served = 0
  const app = express()
  app.use(walletMiddleware({ apiKey, baseUrl, walletId, otherWalletIds: [tempoWalletId] }))
  app.get('/forecast', payMiddleware({ price: demoPrice, description: 'Weather forecast' }), (req, res) => {
    served += 1
    res.json({ forecast: 'sunny', paidBy: paymentOf(req)?.payer })
  })
  app.use('/research', researchRoutes(dev))
  const { url, stop } = await open(app)
  return {
    forecastUrl: `${url}/forecast`,
    researchUrl: `${url}/research`,
    tempoWalletId,
    served: () => served,
    stop,
  }
}

async function walletOnTempo({ apiKey, baseUrl }: DevRecord): Promise<string> {
  const address = privateKeyToAddress(generatePrivateKey())
  const wallet = { name: 'Demo on Tempo', address, chain: 'tempo-moderato', supportedTokens: ['pathUSD'] } as const
  return (await createPurser({ apiKey, baseUrl }).wallets.byo.create(wallet)).id
}

async function open(app: Express): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const server = createServer(app)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
