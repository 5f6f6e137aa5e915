import { Pool } from 'undici'
import { runAsChild, setting } from './child-side.ts'

/**
 * The baseline for deliveries: the same HTTP client, posting the same number of bytes over the same number of
 * kept-alive connections. It signs nothing, uses no database and stores nothing. Reports its rate and CPU time when
 * done.
 */
const origin = `http://127.0.0.1:${setting('BENCH_PORT')}`
const posts = Number(setting('BENCH_POSTS'))
const connections = Number(setting('BENCH_CONNECTIONS'))
const body = Buffer.from(setting('BENCH_BODY'))
/** As many and as long as a delivery's. */
const headers = {
  'content-type': 'application/json',
  'user-agent': 'Purser-Webhooks/1.0',
  'x-service-signature': `sha256=${'0'.repeat(64)}`,
  'x-service-timestamp': '1790000000',
  'webhook-id': 'bare',
  'webhook-timestamp': '1790000000',
  'webhook-signature': `v1,${'0'.repeat(44)} v1a,${'0'.repeat(88)}`,
}
const warming = 2_000

await runAsChild(async () => {
  const pool = new Pool(origin, { connections, pipelining: 1 })
  await post(pool, warming)
  const cpu = process.cpuUsage()
  const began = performance.now()
  await post(pool, posts)
  const ms = performance.now() - began
  const used = process.cpuUsage(cpu)
  return {
    ready: {
      perSecond: String((posts / ms) * 1_000),
      cpuMs: String((used.user + used.system) / 1_000 / posts),
    },
    stop: () => pool.close(),
  }
})

async function post(pool: Pool, count: number): Promise<void> {
  let left = count
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (left-- > 0) {
        const response = await pool.request({ method: 'POST', path: '/bare', headers, body })
        await response.body.text()
        if (response.statusCode !== 204) throw new Error(`the receiver answered ${response.statusCode}`)
      }
    }),
  )
}
