import { startFaultProxy } from '@purser/devnet'
import { runAsChild, setting } from './child-side.ts'

/**
 * A node with network latency: every request to the chain waits some milliseconds. It is a separate process, so that
 * it slows nothing else.
 */
await runAsChild(async () => {
  const proxy = await startFaultProxy(setting('BENCH_RPC_URL'))
  proxy.set({ kind: 'delay', delayMs: Number(setting('BENCH_DELAY_MS')) })
  return { ready: { url: proxy.url }, stop: () => proxy.stop() }
})
