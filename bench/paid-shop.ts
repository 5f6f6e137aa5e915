import { payHook, walletPlugin } from '@purser/sdk/fastify'
import { fastify } from 'fastify'
import { type Ready, runAsChild, setting } from './child-side.ts'

/** A provider's server with one route behind our middleware, which fetches challenges ahead. */
await runAsChild(async () => {
  const app = fastify()
  await app.register(walletPlugin, {
    apiKey: setting('BENCH_API_KEY'),
    baseUrl: setting('BENCH_PURSER'),
    walletId: setting('BENCH_WALLET'),
    otherWalletIds: setting('BENCH_OTHER_WALLETS').split(' ').filter(Boolean),
    challengeBatch: Number(setting('BENCH_BATCH')),
  })
  app.get(
    '/report',
    { onRequest: payHook({ price: setting('BENCH_PRICE'), description: 'Daily report' }) },
    async () => ({
      report: 'all is well',
    }),
  )
  await app.listen({ port: 0, host: '127.0.0.1' })
  const address = app.server.address()
  if (address === null || typeof address === 'string') throw new Error('the shop has no port')
  const ready: Ready = { port: String(address.port) }
  return { ready, stop: () => app.close() }
})
